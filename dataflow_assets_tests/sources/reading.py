"""How the tests read: files written in a folder, rows and bad records back as plain Python."""

from pathlib import Path

from dataflow_assets.batch import column_type, json_value
from dataflow_assets.sources.chunk import BadRecord, Chunk
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.records import _chunks, read_chunks
from dataflow_assets.sources.spec import SourceSpec

CASES = Path(__file__).parent.parent / "cases"


def chunks_of(path: Path, chunk_bytes: int | None = None, **options) -> list[Chunk]:
    spec = SourceSpec(path=path.name, **options)
    pieces = file_pieces(spec, path.parent).pieces
    read = read_chunks if chunk_bytes is None else lambda piece, spec: _chunks(piece, spec, chunk_bytes)
    return [chunk for piece in pieces for chunk in read(piece, spec)]


def rows_in(path: Path, chunk_bytes: int | None = None, **options) -> list[dict]:
    """The rows with their nulls left out, as JSON has a missing key."""
    return [row for chunk in chunks_of(path, chunk_bytes, **options) for row in rows_of_chunk(chunk)]


def rows_of_chunk(chunk: Chunk) -> list[dict]:
    fields = {field.name: field for field in chunk.table.schema if str(field.type) != "null"}
    is_json = {name for name, field in fields.items() if column_type(field) == "json"}
    return [
        {
            name: json_value(value) if name in is_json else value
            for name, value in row.items()
            if value is not None
        }
        for row in chunk.table.to_pylist()
    ] or [{} for _ in range(chunk.table.num_rows)]


def bad_in(path: Path, **options) -> list[BadRecord]:
    return [record for chunk in chunks_of(path, **options) for record in chunk.bad]


def numbers_in(path: Path, chunk_bytes: int | None = None, **options) -> list[int]:
    return [
        number for chunk in chunks_of(path, chunk_bytes, **options) for number in chunk.numbers.to_pylist()
    ]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def without_nulls(row: dict) -> dict:
    return {name: value for name, value in row.items() if value is not None}


def same_with_types(first: object, second: object) -> bool:
    """Equal, and `1`, `1.0` and `True` are three values."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first) == list(second) and all(same_with_types(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_with_types, first, second))
    return first == second


def sorted_keys(row: dict) -> dict:
    return dict(sorted(row.items()))
