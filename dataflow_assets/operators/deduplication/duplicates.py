"""Drops rows that repeat an earlier row exactly, over all batches."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import Field, field_validator

from dataflow_assets.batch import ROW_ID, Schema, arrow_field, arrow_schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import (
    REJECT_REASON,
    DatasetOperator,
    Outcome,
    Params,
    Summaries,
)
from dataflow_assets.operators.registry import register

_COMPARED_ROWS = 1 << 18
DUPLICATE_OF = "duplicate_of"
_SUMMARY: Schema = {ROW_ID: "string", "hash_high": "int64", "hash_low": "int64"}
_VERDICT: Schema = {"row": "int64", DUPLICATE_OF: "string"}


class _DropDuplicatesParams(Params):
    columns: list[str] = Field(
        default_factory=lambda: ["text"],
        min_length=1,
        description="The columns that make two rows equal when all of them are.",
    )

    @field_validator("columns")
    @classmethod
    def _each_once(cls, columns: list[str]) -> list[str]:
        if len(set(columns)) < len(columns):
            raise ValueError("a column is named twice")
        return columns


@register
class DropDuplicates(DatasetOperator):
    """Drops every row that equals an earlier one in the given columns, over all batches.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `columns` (any type).
    Scope: the whole data set; the first row in the order of the partitions stays, whatever the
    batch size. Equal means the same bytes of UTF-8, the same number, the same canonical JSON; nothing
    is normalized, so clean first. Null equals null and nothing else; a row with null in all columns
    is no duplicate. Rows are compared by 128-bit xxh3 hashes: among 10^12 rows, two that differ
    share one with a probability of 10^-15. Rejected rows have the reason `duplicate` and, in
    `duplicate_of`, the `row_id` of the row that stayed. Raises ConfigError where the input has a
    column `duplicate_of`.

    Deciding holds about 40 bytes a row.

    Example:
        - {name: unique, type: drop_duplicates, params: {columns: [text]}}
    """

    name = "drop_duplicates"
    Params = _DropDuplicatesParams
    params: _DropDuplicatesParams

    def reads(self) -> list[str]:
        """The key columns."""
        return list(self.params.columns)

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError if `duplicate_of` is one of them."""
        if DUPLICATE_OF in schema:
            raise ConfigError(
                f"operator {self.name!r} writes the column {DUPLICATE_OF!r} beside its rejected rows, but "
                "the input has one already; rename it with `rename_columns`"
            )
        return dict(schema)

    def summarize(self, table: pa.Table) -> pa.Table:
        """The id and the hash of each row; the hash is null where all key columns are."""
        keys = _keys([table[name] for name in self.params.columns])
        digests = b"".join([xxhash.xxh3_128_digest(key) if key is not None else bytes(16) for key in keys])
        halves = np.frombuffer(digests, ">i8").reshape(-1, 2).astype(np.int64)
        missing = np.fromiter((key is None for key in keys), bool, len(keys))
        hashes = [pa.array(halves[:, half], mask=missing) for half in (0, 1)]
        return pa.Table.from_arrays([table[ROW_ID], *hashes], schema=arrow_schema(_SUMMARY))

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """For each batch: the places of its duplicates and the ids of the rows that they repeat."""
        batches, high, low, present = _columns_of(summaries)
        repeats, firsts = _repeats(high, low, present)
        del high, low, present
        return _verdicts(summaries, batches, repeats, firsts)

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Keeps the rows that the verdict does not name."""
        if not verdict.num_rows:
            return Outcome(table)
        keep = np.ones(table.num_rows, bool)
        keep[verdict["row"].to_numpy()] = False
        reasons = pa.array(["duplicate"] * verdict.num_rows, pa.large_string())
        rejected = table.take(verdict["row"]).append_column(arrow_field(REJECT_REASON, "string"), reasons)
        rejected = rejected.append_column(arrow_field(DUPLICATE_OF, "string"), verdict[DUPLICATE_OF])
        return Outcome(table.filter(pa.array(keep)), rejected)


def _keys(columns: list[pa.ChunkedArray]) -> list[bytes | None]:
    """The bytes that stand for each row: equal exactly where all columns are; None if all are null."""
    values = [pc.cast(_texts(column), pa.large_binary()).to_pylist() for column in columns]
    if len(values) == 1:
        return values[0]
    return [_joined(row) for row in zip(*values, strict=True)]


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # -0.0 and 0.0 are one number
    return column if pa.types.is_large_string(column.type) else column.cast(pa.large_string())


def _joined(row: tuple[bytes | None, ...]) -> bytes | None:
    """Each value after its length, so that ("a", "bc") is not ("ab", "c"); a null has no length."""
    if all(value is None for value in row):
        return None
    return b"".join(b"-" if value is None else b"%d:%b" % (len(value), value) for value in row)


def _columns_of(
    summaries: Summaries,
) -> tuple[list[tuple[str, int]], np.ndarray, np.ndarray, np.ndarray]:
    """The keys and row counts of the batches, and the hashes of all rows in order."""
    batches: list[tuple[str, int]] = []
    high: list[np.ndarray] = []
    low: list[np.ndarray] = []
    present: list[np.ndarray] = []
    for key, summary in summaries:
        batches.append((key, summary.num_rows))
        high.append(pc.fill_null(summary["hash_high"], 0).to_numpy())
        low.append(pc.fill_null(summary["hash_low"], 0).to_numpy())
        present.append(summary["hash_low"].is_valid().to_numpy())
    return batches, _concatenated(high, np.int64), _concatenated(low, np.int64), _concatenated(present, bool)


def _concatenated(parts: list[np.ndarray], kind: type) -> np.ndarray:
    """The parts as one array; empties the list, so that both are not held for long."""
    whole = np.concatenate([*parts, np.empty(0, kind)])
    parts.clear()
    return whole


def _repeats(high: np.ndarray, low: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ordinals of all rows that repeat an earlier one, ascending, and the ordinals of the first."""
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
    return repeats[ascending], firsts[ascending]


def _verdicts(
    summaries: Summaries, batches: list[tuple[str, int]], repeats: np.ndarray, firsts: np.ndarray
) -> Iterator[tuple[str, pa.Table]]:
    """The verdict on each batch, from the ids of the rows that are repeated and no others."""
    needed = np.unique(firsts)
    ids = _ids_of(summaries, needed)
    begin = 0
    for key, rows in batches:
        end = begin + rows
        mine = slice(*np.searchsorted(repeats, (begin, end)))
        originals = ids.take(pa.array(np.searchsorted(needed, firsts[mine])))
        columns = [pa.array(repeats[mine] - begin, pa.int64()), originals]
        yield key, pa.Table.from_arrays(columns, schema=arrow_schema(_VERDICT))
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
