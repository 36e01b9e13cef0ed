"""The rows of a piece of the source, whatever its kind: chunks while streaming, or a look at its columns."""

from collections.abc import Iterator, Sequence

from dataflow_assets.batch import ColumnType, widen_schema
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import BadRecord, BrokenInput, Chunk
from dataflow_assets.sources.columns import types_of
from dataflow_assets.sources.piece import Piece
from dataflow_assets.sources.reading_spec import ReadingSpec

__all__ = ["BadRecord", "Chunk", "peek_schema", "read_chunks"]

CHUNK_BYTES = 2 * 2**20
_PEEK_PIECES = 20
_PEEK_BYTES = 2**20


def read_chunks(piece: Piece, spec: ReadingSpec) -> Iterator[Chunk]:
    """The rows of the piece in order, about 2 MiB of it a chunk, and the records that are no rows.

    Raises SourceError where the piece cannot be read on (after the records before that point), where
    a column has a reserved name, and for the first bad record with `on_bad_line: fail`.
    """
    chunks = _chunks(piece, spec, CHUNK_BYTES)
    return (chunk for chunk in chunks if chunk.table.num_rows or chunk.bad)


def _chunks(piece: Piece, spec: ReadingSpec, chunk_bytes: int) -> Iterator[Chunk]:
    records = 0
    try:
        for chunk in piece.chunks(chunk_bytes):
            if chunk.bad and spec.on_bad_line == "fail":
                raise SourceError(_first_bad(chunk.bad[0]))
            records += chunk.table.num_rows + len(chunk.bad)
            yield chunk
    except BrokenInput as broken:
        raise SourceError(f"{broken}. {records} records were read before that point") from broken


def _first_bad(record: BadRecord) -> str:
    return (
        f"source {record.file}, line {record.line}: {record.reason} (found {record.raw[:200]!r}). "
        "Mend it, or set `source.on_bad_line: reject` to set such records aside"
    )


def peek_schema(pieces: Sequence[Piece], spec: ReadingSpec, rows: int = 1000) -> dict[str, ColumnType | None]:
    """The columns of the first rows of up to 20 pieces, each with the narrowest type that holds them.

    A piece that knows its columns is not opened.
    """
    return widen_schema(
        schema for piece in pieces[:_PEEK_PIECES] for schema in _first_schemas(piece, spec, rows)
    )


def _first_schemas(piece: Piece, spec: ReadingSpec, rows: int) -> Iterator[dict[str, ColumnType | None]]:
    known = piece.known_columns()
    if known is not None:
        yield dict(known)
        return
    seen = 0
    for chunk in _chunks(piece.for_a_look(), spec, _PEEK_BYTES):
        yield types_of(chunk.table)
        seen += chunk.table.num_rows
        if seen >= rows:
            return
