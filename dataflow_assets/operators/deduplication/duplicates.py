"""Drops rows that repeat an earlier row exactly, over all batches."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import Field, field_validator

from dataflow_assets.batch import ROW_ID, Schema, arrow_schema, column_of, column_type, values_of
from dataflow_assets.operators.deduplication.simplified_text import normalized
from dataflow_assets.operators.deduplication.verdicts import (
    DUPLICATE_OF,
    apply_verdict,
    concatenated,
    numbers,
    refuse_columns,
    repeats_of_equal,
    verdicts,
)
from dataflow_assets.operators.operator import DatasetOperator, Outcome, Params, Summaries
from dataflow_assets.operators.registry import register

_SUMMARY: Schema = {ROW_ID: "string", "hash_high": "int64", "hash_low": "int64"}


class _DropDuplicatesParams(Params):
    columns: list[str] = Field(
        default_factory=lambda: ["text"],
        min_length=1,
        description="The columns that make two rows equal when all of them are.",
    )

    normalize: bool = Field(
        False,
        description="Whether texts are compared in Unicode's composed form (NFC) with each run of white "
        "space as one space and none at the ends.",
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
    batch size. Equal means the same bytes of UTF-8, the same number, the same canonical JSON; with
    `normalize` texts are equal that differ in white space and in how accents are coded (NFC) alone;
    case counts always. Null equals null and nothing else; a row with null in all columns
    is no duplicate. Rows are compared by 128-bit xxh3 hashes: among 10^12 rows, two that differ
    share one with a probability of 10^-15. Rejected rows have the reason `duplicate` and, in
    `duplicate_of`, the `row_id` of the row that stayed. Raises ConfigError where the input has a
    column `duplicate_of`.

    Deciding holds about 40 bytes a row.

    Example:
        - {name: unique, type: drop_duplicates, params: {columns: [text]}}
    """

    name = "drop_duplicates"
    version = "2"
    Params = _DropDuplicatesParams
    params: _DropDuplicatesParams

    def reads(self) -> list[str]:
        """The key columns."""
        return list(self.params.columns)

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError if `duplicate_of` is one of them."""
        refuse_columns(self.name, schema, (DUPLICATE_OF,))
        return dict(schema)

    def summarize(self, table: pa.Table) -> pa.Table:
        """The id and the hash of each row; the hash is null where all key columns are."""
        keys = _keys(table.select(self.params.columns), self.params.normalize)
        digests = b"".join([xxhash.xxh3_128_digest(key) if key is not None else bytes(16) for key in keys])
        halves = np.frombuffer(digests, ">i8").reshape(-1, 2).astype(np.int64)
        missing = np.fromiter((key is None for key in keys), bool, len(keys))
        hashes = [pa.array(halves[:, half], mask=missing) for half in (0, 1)]
        return pa.Table.from_arrays([table[ROW_ID], *hashes], schema=arrow_schema(_SUMMARY))

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """For each batch: the places of its duplicates and the ids of the rows that they repeat."""
        batches, high, low, present = _columns_of(summaries)
        repeats = repeats_of_equal(high, low, present)
        del high, low, present
        return verdicts(summaries, batches, repeats)

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Keeps the rows that the verdict does not name."""
        return apply_verdict(table, verdict, "duplicate")


def _keys(table: pa.Table, normalize: bool) -> list[bytes | None]:
    """The bytes that stand for each row: equal exactly where all columns are; None if all are null."""
    texts = [_normalized(table, name) if normalize else _texts(table[name]) for name in table.column_names]
    values = [pc.cast(column, pa.large_binary()).to_pylist() for column in texts]
    if len(values) == 1:
        return values[0]
    return [_joined(row) for row in zip(*values, strict=True)]


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # -0.0 and 0.0 are one number
    return column if pa.types.is_large_string(column.type) else column.cast(pa.large_string())


def _normalized(table: pa.Table, name: str) -> pa.ChunkedArray:
    """The column with its texts normalized: all of strings, and those values of JSON that are texts."""
    kind = column_type(table.schema.field(name))
    if kind not in ("string", "json"):
        return _texts(table[name])
    values = [normalized(value) if isinstance(value, str) else value for value in values_of(table, name)]
    return pa.chunked_array([column_of(values, kind)])


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
        high.append(numbers(summary["hash_high"]))
        low.append(numbers(summary["hash_low"]))
        present.append(summary["hash_low"].is_valid().to_numpy())
    return batches, concatenated(high, np.int64), concatenated(low, np.int64), concatenated(present, bool)
