"""Which reader reads which format of files."""

from collections.abc import Callable, Iterator

from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.delimited import read_delimited
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.documents.reader import read_documents
from dataflow_assets.sources.json_array import read_json
from dataflow_assets.sources.jsonl import read_jsonl
from dataflow_assets.sources.parquet import read_parquet
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.sources.text import read_text

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


def read_file(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """The rows of the file in order, about `chunk_bytes` of it a chunk."""
    return _READERS[file.format](file, spec, chunk_bytes)
