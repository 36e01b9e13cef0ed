"""Rows that fail alone: the one on which an operator raises, and the one that ends its process."""

import pyarrow as pa

from dataflow_assets.batch import arrow_schema, schema_of
from dataflow_assets.engines.outcomes import joined_outcomes
from dataflow_assets.errors import DataflowError, Raised, RowError, WorkerDied
from dataflow_assets.operators.operator import Outcome, RowErrors, RowOperator


def isolated(operator: RowOperator, rows: pa.Table) -> Outcome:
    """The operator's outcome; where it raises, the rows are halved until those that raise are found.

    Those are failed with their error. An error that is nobody's row (a wrong parameter, a missing
    package, no memory left) is raised, and so is one of an operator that must have all rows at once.
    """
    try:
        return operator.apply(rows)
    except (ImportError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if operator.needs_all_rows or not rows.num_rows:
            raise
        if isinstance(error, DataflowError) and not isinstance(error, RowError):
            raise
        if rows.num_rows == 1:
            return _failed(operator, rows, error)
    half = rows.num_rows // 2
    return joined_outcomes([isolated(operator, rows.slice(0, half)), isolated(operator, rows.slice(half))])


def killed(operator: RowOperator, row: pa.Table, attempts: int) -> Outcome:
    """The outcome of the one row that ended its process each time."""
    error = WorkerDied(f"the worker process died on this row in each of {attempts} attempts")
    return _failed(operator, row, error, attempts)


def none_kept(operator: RowOperator, rows: pa.Table) -> pa.Table:
    """What the operator keeps of such rows where it keeps none."""
    return arrow_schema(operator.output_schema(schema_of(rows))).empty_table()


def _failed(operator: RowOperator, row: pa.Table, error: Raised, attempts: int = 1) -> Outcome:
    failed = RowErrors([0], [error]).failed_rows(row, attempts)
    return Outcome(none_kept(operator, row), None, failed)
