"""Which rows of the data set go because of which earlier ones, told batch by batch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, Schema, arrow_field, arrow_schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Outcome, RowErrors, Summaries, split_by_reason

DUPLICATE_OF = "duplicate_of"
SIMILARITY = "similarity"
_COMPARED_ROWS = 1 << 18
_VERDICT: Schema = {"row": "int64", DUPLICATE_OF: "string"}


class Repeats(NamedTuple):
    """Ordinals of rows over all batches: `rows` ascend and go, the row `firsts` of each stays."""

    rows: np.ndarray
    firsts: np.ndarray
    similarities: np.ndarray | None = None


def repeats_of_equal(high: np.ndarray, low: np.ndarray, present: np.ndarray) -> Repeats:
    """All rows whose two halves of a hash are those of an earlier row; absent ones repeat nothing."""
    order = np.lexsort((low, high))
    same = np.zeros(len(order), bool)
    for begin in range(1, len(order), _COMPARED_ROWS):  # in pieces, for each makes four copies
        end = min(begin + _COMPARED_ROWS, len(order))
        this, before = order[begin:end], order[begin - 1 : end - 1]
        same[begin:end] = (high[this] == high[before]) & (low[this] == low[before])
    places = np.flatnonzero(same & present[order])
    starts = np.flatnonzero(~same)
    group = starts[np.searchsorted(starts, places, side="right") - 1]
    repeats, firsts = order[places], order[group]
    ascending = np.argsort(repeats)
    return Repeats(repeats[ascending], firsts[ascending])


def verdicts(
    summaries: Summaries, batches: Sequence[tuple[str, int]], repeats: Repeats
) -> Iterator[tuple[str, pa.Table]]:
    """The verdict on each batch, from the ids of the rows that are repeated and no others.

    `batches` are the keys and row counts of the summaries, which have a column `row_id`.
    """
    needed = np.unique(repeats.firsts)
    ids = _ids_of(summaries, needed)
    schema = arrow_schema(_VERDICT)
    if repeats.similarities is not None:
        schema = schema.append(arrow_field(SIMILARITY, "float64"))
    begin = 0
    for key, rows in batches:
        end = begin + rows
        mine = slice(*np.searchsorted(repeats.rows, (begin, end)))
        originals = ids.take(pa.array(np.searchsorted(needed, repeats.firsts[mine])))
        columns = [pa.array(repeats.rows[mine] - begin, pa.int64()), originals]
        if repeats.similarities is not None:
            columns.append(pa.array(repeats.similarities[mine]))
        yield key, pa.Table.from_arrays(columns, schema=schema)
        begin = end


def _ids_of(summaries: Summaries, needed: np.ndarray) -> pa.Array:
    """The `row_id` of the rows with these ordinals, which ascend; goes through the summaries again."""
    chunks: list[pa.Array] = [pa.array([], pa.large_string())]
    begin = 0
    for _, summary in summaries:
        end = begin + summary.num_rows
        here = needed[slice(*np.searchsorted(needed, (begin, end)))] - begin
        chunks += summary[ROW_ID].take(pa.array(here)).chunks
        begin = end
    return pa.concat_arrays(chunks)


def apply_verdict(
    table: pa.Table,
    verdict: pa.Table,
    reason: str,
    missing: Sequence[int] = (),
    errors: RowErrors | None = None,
) -> Outcome:
    """Rejects the rows that the verdict names, with its columns beside; those at `missing` have no text."""
    places = pa.array(verdict["row"].to_numpy())
    reasons = np.full(table.num_rows, None, object)
    reasons[places] = reason
    reasons[list(missing)] = "missing_text"
    outcome = split_by_reason(table, pa.array(reasons, pa.large_string()), errors)
    if outcome.rejected is None:
        return outcome
    gone = np.flatnonzero(reasons.astype(bool))
    lines = pc.index_in(pa.array(gone), places)
    rejected = outcome.rejected
    for field in list(verdict.schema)[1:]:
        rejected = rejected.append_column(field, verdict[field.name].take(lines))
    return outcome._replace(rejected=rejected)


def refuse_columns(operator: str, schema: Schema, names: Sequence[str]) -> None:
    """Raises ConfigError where the input has a column that is written beside rejected rows."""
    for name in names:
        if name in schema:
            raise ConfigError(
                f"operator {operator!r} writes the column {name!r} beside its rejected rows, but "
                "the input has one already; rename it with `rename_columns`"
            )


def concatenated(parts: list[np.ndarray], kind: type) -> np.ndarray:
    """The parts as one array; empties the list, so that both are not held for long."""
    whole = np.concatenate([*parts, np.empty(0, kind)])
    parts.clear()
    return whole


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column of int64 as an array, null as 0."""
    return pc.fill_null(column, 0).to_numpy()
