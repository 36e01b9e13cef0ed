"""Puts the rows of a batch that were done again in their places among those that stay."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, Schema, arrow_field, conform, schema_of, widen_schema
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.row_ids import parents_of


def merged(
    old: Outcome, new: Outcome, came_in: pa.ChunkedArray, splits: bool, redone: Iterable[str]
) -> Outcome:
    """The outcome of a batch whose rows `redone` have the outcome `new` instead of what they had in `old`.

    Every part is in the order of `came_in`, the ids of the batch's input rows; the children of a row
    are at its place. Rejected rows without a partner in a join, which never came in, are last.
    """
    ids = pa.array(sorted(redone), pa.large_string())

    def part(before: pa.Table | None, after: pa.Table | None, children: bool) -> pa.Table | None:
        stays = None if before is None else _without(before, ids, children)
        return _in_order([table for table in (stays, after) if table is not None], came_in, children)

    kept = part(old.kept, new.kept, splits)
    assert kept is not None
    return Outcome(kept, part(old.rejected, new.rejected, False), part(old.failed, new.failed, False))


def _without(table: pa.Table, ids: pa.Array, children: bool) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(_rows_before(table, children), ids)))


def _rows_before(table: pa.Table, children: bool) -> pa.ChunkedArray:
    """The ids of the input rows that the rows of a table come from."""
    return parents_of(table[ROW_ID]) if children else table[ROW_ID]


def _in_order(tables: Sequence[pa.Table], came_in: pa.ChunkedArray, children: bool) -> pa.Table | None:
    if not tables:
        return None
    widened = widen_schema(map(schema_of, tables))
    schema: Schema = {name: kind or "string" for name, kind in widened.items()}
    table = pa.concat_tables([conform(table, schema) for table in tables])
    places = pc.index_in(_rows_before(table, children), came_in)
    order = np.argsort(pc.fill_null(places, len(came_in)).to_numpy(), kind="stable")
    return table.take(pa.array(order))


def with_attempts(outcome: Outcome, before: Mapping[str, int]) -> Outcome:
    """The outcome with the attempts that its failed rows had before counted in."""
    failed = outcome.failed
    if failed is None or not failed.num_rows:
        return outcome
    pairs = zip(failed["attempts"].to_pylist(), failed[ROW_ID].to_pylist(), strict=True)
    attempts = pa.array([now + before.get(row_id, 0) for now, row_id in pairs], pa.int64())
    place = failed.column_names.index("attempts")
    return outcome._replace(failed=failed.set_column(place, arrow_field("attempts", "int64"), attempts))
