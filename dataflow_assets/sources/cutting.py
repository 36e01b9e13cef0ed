"""Cuts the rows of a piece into batches, and gives each row its id."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataflow_assets.batch import ROW_ID, ColumnType, Schema, arrow_field, conform, places_where, table_of
from dataflow_assets.io.formats import Format, unfit_numbers
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.sources.chunk import BadRecord, Chunk
from dataflow_assets.sources.piece import Piece
from dataflow_assets.sources.records import read_chunks

_REJECTED: Schema = {
    ROW_ID: "string",
    "file": "string",
    "line": "int64",
    "raw": "string",
    "reject_detail": "string",
    "reject_reason": "string",
}


class Cut(NamedTuple):
    """The rows and bad lines of one batch, before the columns of the whole source are known."""

    key: str
    slug: str
    chunks: list[Chunk]
    bad: list[BadRecord]
    name_column: str | None

    @property
    def rows(self) -> int:
        """How many good rows it has."""
        return sum(chunk.table.num_rows for chunk in self.chunks)

    def tables(self) -> list[pa.Table]:
        """The rows with their `row_id`, each chunk with the columns that it has."""
        return [_with_row_ids(chunk, self) for chunk in self.chunks]

    def table(self, schema: Schema) -> pa.Table:
        """The rows with these columns."""
        tables = [conform(table, schema) for table in self.tables()]
        return pa.concat_tables(tables) if tables else table_of({name: [] for name in schema}, schema)

    def rejected(self) -> pa.Table:
        """The lines that could not be read."""
        return rejected_table(self.slug, self.bad)

    def count_bad(self, counts: dict[str, int]) -> None:
        """Adds the bad lines by reason."""
        for record in self.bad:
            counts[_kind(record)] = counts.get(_kind(record), 0) + 1


def cuts_of(piece: Piece, pipeline: Pipeline, stem: str) -> Iterator[Cut]:
    """The piece's rows in batches of at most `batch_rows` rows and about `batch_bytes` bytes."""
    limit = pipeline.batch_rows
    number = 0
    held: list[Chunk] = []
    rows = size = 0

    def cut() -> Cut:
        bad = [record for chunk in held for record in chunk.bad]
        key = f"{stem}{number:05d}" if limit else stem
        chunks = [chunk for chunk in held if chunk.table.num_rows]
        return Cut(key, piece.slug, chunks, bad, piece.name_column)

    for chunk in read_chunks(piece, pipeline.source):
        for part in _parts(_writable(chunk, piece.name, pipeline.format), limit, rows):
            held.append(part)
            rows += part.table.num_rows
            size += part.table.nbytes
            if limit and (rows >= limit or size >= pipeline.batch_bytes):
                yield cut()
                held, rows, size, number = [], 0, 0, number + 1
    if held and (rows or any(chunk.bad for chunk in held)):
        yield cut()


def rejected_table(slug: str, bad: Sequence[BadRecord]) -> pa.Table:
    """The lines that could not be read; the reason is its kind, the detail says more."""
    columns = {
        ROW_ID: [f"{slug}:{record.line}" for record in bad],
        "file": [record.file for record in bad],
        "line": [record.line for record in bad],
        "raw": [record.raw for record in bad],
        "reject_detail": [record.reason for record in bad],
        "reject_reason": [_kind(record) for record in bad],
    }
    return table_of(columns, _REJECTED)


def final_schema(schema: Mapping[str, ColumnType | None]) -> Schema:
    """The columns of step 0: `row_id` first; a column with nothing but nulls is a string column."""
    columns: Schema = {ROW_ID: "string"}
    for name, kind in schema.items():
        columns.setdefault(name, kind or "string")
    return columns


def _kind(record: BadRecord) -> str:
    return record.reason.partition(":")[0].strip()


def _writable(chunk: Chunk, piece: str, format: Format) -> Chunk:
    """The chunk without the rows that hold a number which the step files cannot: they are bad records."""
    fits = pa.chunked_array([pa.repeat(True, chunk.table.num_rows)])
    bad = list(chunk.bad)
    for unfit in unfit_numbers(chunk.table, format):
        for position in places_where(pc.and_(unfit.rows, fits)).to_pylist():
            value = chunk.table[unfit.column][position].as_py()
            reason = f"number is not finite: column {unfit.column!r} holds {value}; {unfit.reason}"
            raw = str(chunk.table.slice(position, 1).to_pylist()[0])[:4096]
            bad.append(BadRecord(piece, chunk.numbers[position].as_py(), reason, raw))
        fits = pc.and_(fits, pc.invert(unfit.rows))
    if len(bad) == len(chunk.bad):
        return chunk
    return chunk.filtered(fits.combine_chunks(), sorted(bad, key=lambda record: record.line))


def _with_row_ids(chunk: Chunk, cut: Cut) -> pa.Table:
    """The rows with their `row_id`: `<piece>:<record number>`.

    A row that is a whole file has the hash of its name instead, which another file does not change;
    a document brings ids of its own.
    """
    if chunk.row_ids is not None:
        return chunk.table.add_column(0, arrow_field(ROW_ID, "string"), chunk.row_ids)
    numbers = chunk.numbers.cast(pa.large_string())
    if cut.name_column in chunk.table.column_names:
        names = chunk.table[cut.name_column].to_pylist()
        numbers = pa.array([xxhash.xxh3_64_hexdigest(name.encode()) for name in names], pa.large_string())
    prefix = pa.scalar(cut.slug, pa.large_string())
    row_ids = pc.binary_join_element_wise(prefix, numbers, pa.scalar(":", pa.large_string()))
    return chunk.table.add_column(0, arrow_field(ROW_ID, "string"), row_ids)


def _parts(chunk: Chunk, limit: int | None, held: int) -> Iterator[Chunk]:
    """The chunk cut where the batch of `limit` rows, of which `held` are there, gets full.

    A bad line goes with the rows before it, so that mending it touches one batch.
    """
    start, rows = 0, chunk.table.num_rows
    while limit and rows - start > limit - held:
        stop = start + limit - held
        last = chunk.numbers[stop].as_py()
        bad = [record for record in chunk.bad if record.line < last]
        yield chunk.sliced(start, stop - start, bad)
        chunk = chunk._replace(bad=[record for record in chunk.bad if record.line >= last])
        start, held = stop, 0
    yield chunk.sliced(start, None, chunk.bad)
