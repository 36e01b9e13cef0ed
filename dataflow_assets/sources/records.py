"""The rows of a source file, whatever its format: chunks while streaming, or a look at its columns."""

from collections.abc import Callable, Iterator, Sequence

from dataflow_assets.batch import ColumnType, widen_schema
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import BadRecord, BrokenInput, Chunk
from dataflow_assets.sources.columns import types_of
from dataflow_assets.sources.delimited import read_delimited
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.documents.reader import document_schema, read_documents
from dataflow_assets.sources.json_array import read_json
from dataflow_assets.sources.jsonl import read_jsonl
from dataflow_assets.sources.parquet import read_parquet
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.sources.text import read_text

__all__ = ["BadRecord", "Chunk", "peek_schema", "read_chunks"]

CHUNK_BYTES = 2 * 2**20
_PEEK_FILES = 20
_PEEK_BYTES = 2**20
_Reader = Callable[[SourceFile, SourceSpec, int], Iterator[Chunk]]
_READERS: dict[str, _Reader] = {
    "documents": read_documents,
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_delimited,
    "tsv": read_delimited,
    "parquet": read_parquet,
    "txt": read_text,
}


def read_chunks(file: SourceFile, spec: SourceSpec) -> Iterator[Chunk]:
    """The rows of the file in order, about 2 MiB of it a chunk, and the records that are no rows.

    Raises SourceError where the file cannot be read on (after the records before that point), where
    a column has a reserved name, and for the first bad record with `on_bad_line: fail`.
    """
    chunks = _chunks(file, spec, CHUNK_BYTES)
    return (chunk for chunk in chunks if chunk.table.num_rows or chunk.bad)


def _chunks(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    records = 0
    try:
        for chunk in _READERS[file.format](file, spec, chunk_bytes):
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


def peek_schema(
    files: Sequence[SourceFile], spec: SourceSpec, rows: int = 1000
) -> dict[str, ColumnType | None]:
    """The columns of the first rows of up to 20 files, each with the narrowest type that holds them.

    Documents have the same columns always, and are not opened.
    """
    if spec.files is not None:
        return dict(document_schema(files[0].name, spec))
    return widen_schema(
        types_of(chunk.table) for file in files[:_PEEK_FILES] for chunk in _first_chunks(file, spec, rows)
    )


def _first_chunks(file: SourceFile, spec: SourceSpec, rows: int) -> Iterator[Chunk]:
    seen = 0
    for chunk in _chunks(file, spec, _PEEK_BYTES):
        yield chunk
        seen += chunk.table.num_rows
        if seen >= rows:
            return
