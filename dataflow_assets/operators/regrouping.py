"""Operators that give a batch the rows of others: a new order, or rows that a query makes."""

import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataflow_assets.batch import (
    ROW_ID,
    Schema,
    arrow_field,
    arrow_schema,
    conform,
    content_hash,
    places_where,
    schema_of,
)
from dataflow_assets.errors import ConservationError
from dataflow_assets.operators.operator import REJECT_REASON, DatasetOperator, Outcome, Summaries
from dataflow_assets.operators.table_rows import put_aside, rejected_rows

_SUMMARY: Schema = {"content_hash": "string"}
_IDS = 1 << 128


class Regrouped(NamedTuple):
    """A batch of the result: its rows, and the ids of the input rows of this batch that are in no batch."""

    rows: pa.Table
    dropped: pa.Array | pa.ChunkedArray


class RegroupingOperator(DatasetOperator):
    """An operator whose result has batches of its own, as many as came in.

    The state keeps the hash of each batch, so that a change is seen, and in place of a verdict the rows
    of each batch of the result: on disk they are there once more than those of another step. Whether
    every row is there, moved or dropped, is checked over all batches before the last is committed,
    unless `keeps_rows` says that the result has rows of its own.

    The two-pass classes hand over the same things under other names: `decide` is given the rows.
    """

    regroups = True
    drop_reason: ClassVar[str] = "not_in_result"

    def keeps_rows(self, schema: Schema) -> bool:
        """Whether the rows of the result are those that came in, for rows with these columns."""
        return True

    @abstractmethod
    def regroup(self, batches: Summaries) -> Iterable[tuple[str, Regrouped]]:
        """The batches of the result, for all batches that came in, in their order."""

    def summarize(self, table: pa.Table) -> pa.Table:
        """The hash of the rows."""
        return pa.table([[content_hash(table)]], schema=arrow_schema(_SUMMARY))

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """The rows of each batch of the result, each dropped input row as its id and a reason."""
        batches = _CountedBatches(summaries)
        went_out = _IdCount()
        last: tuple[str, pa.Table] | None = None
        for key, (rows, dropped) in self.regroup(batches):
            if last is not None:
                yield last
            went_out.add(rows[ROW_ID])
            went_out.add(dropped)
            last = key, self._packed(rows, dropped)
        if batches.count != went_out and self.keeps_rows(batches.schema):
            raise ConservationError(
                f"operator {self.name!r} was given {batches.count.rows} rows and gave {went_out.rows}, or "
                "gave others; every row must be kept or rejected once, so the last commit was refused"
            )
        if last is not None:
            yield last

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """The rows that the batch gets, and those of its own that are in no batch."""
        reasons = verdict[REJECT_REASON]
        rows = verdict.drop_columns([REJECT_REASON])
        if reasons.null_count == len(reasons):
            return Outcome(rows)
        dropped = pc.is_in(table[ROW_ID], verdict.filter(reasons.is_valid())[ROW_ID])
        positions = places_where(dropped).to_numpy()
        return Outcome(rows.filter(reasons.is_null()), rejected_rows(table, positions, self.drop_reason))

    def _packed(self, rows: pa.Table, dropped: pa.Array | pa.ChunkedArray) -> pa.Table:
        gone = conform(pa.table([dropped], schema=arrow_schema({ROW_ID: "string"})), schema_of(rows))
        whole = pa.concat_tables([rows, gone])
        reasons = [None] * rows.num_rows + [self.drop_reason] * gone.num_rows
        return whole.append_column(arrow_field(REJECT_REASON, "string"), pa.array(reasons, pa.large_string()))


class ReorderingOperator(RegroupingOperator):
    """Gives all rows a new order; each batch keeps its number of rows.

    The rows wait in a temporary file, of which a batch's rows are read at a time.
    """

    def touched(self, schema: Schema) -> set[str]:
        """No value changes."""
        return set()

    @abstractmethod
    def order(self, rows: "SpooledRows") -> np.ndarray:
        """The ordinals of all rows in their new order."""

    def regroup(self, batches: Summaries) -> Iterator[tuple[str, Regrouped]]:
        """The rows in their new order."""
        with SpooledRows(batches) as rows:
            order, begin = self.order(rows) if rows.counts else np.empty(0, np.int64), 0
            for key, count in rows.counts.items():
                yield key, Regrouped(rows.take(order[begin : begin + count]), pa.array([], pa.large_string()))
                begin += count


class SpooledRows:
    """The rows of all batches in a temporary file that is mapped, not read, into memory.

    Raises StorageError where the disk is full.
    """

    def __init__(self, batches: Iterable[tuple[str, pa.Table]]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="dataflow-")
        self.counts: dict[str, int] = {}
        path = str(Path(self._folder.name, "rows.arrow"))
        try:
            self._schema = self._write(path, batches)
            self._chunks = self._mapped(path)
        except BaseException:
            self._folder.cleanup()
            raise
        self._starts = np.cumsum([0, *(chunk.num_rows for chunk in self._chunks)])

    def _write(self, path: str, batches: Iterable[tuple[str, pa.Table]]) -> pa.Schema:
        schema, writer = pa.schema([]), None
        try:
            for key, table in batches:
                self.counts[key] = table.num_rows
                with put_aside("the rows"):
                    if writer is None:
                        schema, writer = table.schema, pa.ipc.new_file(path, table.schema)
                    writer.write_table(table.combine_chunks())
        finally:
            if writer is not None:
                with put_aside("the rows"):
                    writer.close()
        return schema

    def _mapped(self, path: str) -> list[pa.RecordBatch]:
        if not self.counts:
            return []
        reader = pa.ipc.open_file(pa.memory_map(path))
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]

    def __enter__(self) -> "SpooledRows":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._chunks = []
        self._folder.cleanup()

    def columns(self, names: Sequence[str]) -> pa.Table:
        """These columns of all rows, in order."""
        whole = pa.Table.from_batches(self._chunks, self._schema)
        return whole.select(list(names))

    def take(self, ordinals: np.ndarray) -> pa.Table:
        """The rows with these ordinals, in the order given."""
        order = np.argsort(ordinals, kind="stable")
        ascending = ordinals[order]
        bounds = np.searchsorted(ascending, self._starts)
        pieces = [
            chunk.take(pa.array(ascending[begin:end] - start))
            for chunk, start, begin, end in zip(
                self._chunks, self._starts[:-1], bounds[:-1], bounds[1:], strict=True
            )
            if end > begin
        ]
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return pa.Table.from_batches(pieces, self._schema).take(pa.array(places))


class _IdCount:
    """Rows counted by their ids in any order: their number, and the sum of the hashes of the ids."""

    def __init__(self) -> None:
        self.rows, self._sum = 0, 0

    def add(self, row_ids: pa.Array | pa.ChunkedArray) -> None:
        self.rows += len(row_ids)
        hashes = (xxhash.xxh3_128_intdigest((row_id or "").encode()) for row_id in row_ids.to_pylist())
        self._sum = (self._sum + sum(hashes)) % _IDS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdCount) and (self.rows, self._sum) == (other.rows, other._sum)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  it changes


class _CountedBatches:
    """The batches; each time they are gone through, the rows are counted anew."""

    def __init__(self, batches: Summaries) -> None:
        self._batches = batches
        self.count = _IdCount()
        self.schema: Schema = {}

    def __iter__(self) -> Iterator[tuple[str, pa.Table]]:
        self.count = _IdCount()
        for key, table in self._batches:
            self.count.add(table[ROW_ID])
            self.schema = schema_of(table)
            yield key, table
