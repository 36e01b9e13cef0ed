"""The rows that one row becomes: its columns, some of them new, and its id with a number behind it."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from dataflow_assets.batch import ROW_ID, Schema, arrow_field
from dataflow_assets.operators.operator import REJECT_REASON
from dataflow_assets.operators.table_rows import rows_with


def child_rows(
    table: pa.Table, parents: Sequence[int], new: Mapping[str, Sequence[object]], schema: Schema
) -> pa.Table:
    """A row for each of `parents` (positions, those of one row together) with these new values."""
    row_ids = table[ROW_ID].to_pylist()
    ids = [
        f"{row_ids[parent]}/{number}"
        for parent, children in groupby(parents)
        for number, _ in enumerate(children)
    ]
    return rows_with(table, parents, {**new, ROW_ID: ids}, schema)


def rejected_rows(table: pa.Table, reasons: Mapping[int, str]) -> pa.Table | None:
    """The rows at these positions, each with the reason why it is dropped."""
    if not reasons:
        return None
    positions = sorted(reasons)
    named = pa.array([reasons[position] for position in positions], pa.large_string())
    rows = table.take(pa.array(positions, pa.int64()))
    return rows.append_column(arrow_field(REJECT_REASON, "string"), named)
