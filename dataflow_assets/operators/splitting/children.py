"""The rows that one row becomes: its columns, some of them new, and its id with a number behind it."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from dataflow_assets.batch import ROW_ID, Schema, arrow_field, arrow_schema, column_of
from dataflow_assets.operators.operator import REJECT_REASON


def child_rows(
    table: pa.Table, parents: Sequence[int], new: Mapping[str, Sequence[object]], schema: Schema
) -> pa.Table:
    """A row for each of `parents` (positions, those of one row together) with these new values."""
    rows = table.take(pa.array(parents, pa.int64()))
    numbers, last = [], (-1, -1)
    for parent in parents:
        last = (parent, last[1] + 1 if parent == last[0] else 0)
        numbers.append(last[1])
    ids = [f"{row_id}/{n}" for row_id, n in zip(rows[ROW_ID].to_pylist(), numbers, strict=True)]
    values: Mapping[str, Sequence[object]] = {**new, ROW_ID: ids}
    arrays = [
        column_of(values[name], kind) if name in values else rows[name] for name, kind in schema.items()
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def rejected_rows(table: pa.Table, reasons: Mapping[int, str]) -> pa.Table | None:
    """The rows at these positions, each with the reason why it is dropped."""
    if not reasons:
        return None
    positions = sorted(reasons)
    named = pa.array([reasons[position] for position in positions], pa.large_string())
    rows = table.take(pa.array(positions, pa.int64()))
    return rows.append_column(arrow_field(REJECT_REASON, "string"), named)
