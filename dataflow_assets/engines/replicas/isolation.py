"""Finds the row on which an operator raises, so that it fails alone."""

import pyarrow as pa

from dataflow_assets.batch import arrow_schema, schema_of
from dataflow_assets.engines.engine import joined_outcomes
from dataflow_assets.errors import DataflowError, RowError
from dataflow_assets.operators.operator import Outcome, RowErrors, RowOperator


def isolated(operator: RowOperator, rows: pa.Table) -> Outcome:
    """The operator's outcome; where it raises, the rows are halved until those that raise are found.

    Those are failed with their error. An error that is nobody's row (a wrong parameter, a missing
    package) is raised.
    """
    try:
        return operator.apply(rows)
    except ImportError:
        raise
    except Exception as error:
        if (isinstance(error, DataflowError) and not isinstance(error, RowError)) or not rows.num_rows:
            raise
        if rows.num_rows == 1:
            kept = arrow_schema(operator.output_schema(schema_of(rows))).empty_table()
            return Outcome(kept, None, RowErrors([0], [error]).failed_rows(rows))
    half = rows.num_rows // 2
    return joined_outcomes([isolated(operator, rows.slice(0, half)), isolated(operator, rows.slice(half))])
