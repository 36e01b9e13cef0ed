"""Outcomes as bytes, for engines whose workers are other processes."""

import pyarrow as pa

from dataflow_assets.batch import arrow_schema, packed, schema_of, unpacked
from dataflow_assets.errors import WorkerDied
from dataflow_assets.operators.operator import Outcome, RowErrors, RowOperator

Wire = tuple[bytes | None, ...]


def to_wire(outcome: Outcome) -> Wire:
    """The outcome as Arrow IPC streams."""
    return tuple(None if table is None else packed(table) for table in outcome)


def from_wire(wire: Wire) -> Outcome:
    """The outcome that was packed."""
    kept, rejected, failed = (None if data is None else unpacked(data) for data in wire)
    assert kept is not None
    return Outcome(kept, rejected, failed)


def killed(operator: RowOperator, row: pa.Table, attempts: int) -> Outcome:
    """The outcome of the one row that ended its process each time."""
    kept = arrow_schema(operator.output_schema(schema_of(row))).empty_table()
    error = WorkerDied(f"the worker process died on this row in each of {attempts} attempts")
    return Outcome(kept, None, RowErrors([0], [error]).failed_rows(row, attempts))
