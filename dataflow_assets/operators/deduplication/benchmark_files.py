"""The texts of benchmark files: JSON Lines, Parquet, or plain text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from dataflow_assets.sources.json_line import exact_value_of_bytes

_BLANK_LINES = re.compile(r"\n\s*\n")


class BenchmarkFile(NamedTuple):
    """A file of a benchmark and the hash of its content when it was first read."""

    name: str
    path: str
    content_hash: str


def benchmark_file(name: str, path: Path) -> BenchmarkFile:
    """The file with its hash. Raises ValueError where it cannot be read or is of another kind."""
    if path.suffix not in _READERS:
        raise ValueError(f"{path} is no file of a benchmark; expected one of {', '.join(_READERS)}")
    return BenchmarkFile(name, str(path.absolute()), xxhash.xxh3_128_hexdigest(_content(path)))


@lru_cache(maxsize=16)
def benchmark_texts(file: BenchmarkFile, columns: Sequence[str]) -> list[str]:
    """The texts of the columns (of all, without columns), lists and objects entered.

    Raises ValueError where the file has changed since, is broken, or lacks one of the columns.
    """
    path = Path(file.path)
    data = _content(path)
    if xxhash.xxh3_128_hexdigest(data) != file.content_hash:
        raise ValueError(f"{path} changed while it was in use; load the pipeline again")
    try:
        rows = _READERS[path.suffix](data)
    except (ValueError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read as {path.suffix}: {error}") from error
    missing = sorted(set(columns) - {name for row in rows for name in row})
    if missing:
        found = ", ".join(sorted({name for row in rows for name in row})) or "none"
        raise ValueError(f"{path} has no column {missing[0]!r}; it has: {found}")
    return [
        text
        for row in rows
        for name, value in row.items()
        if not columns or name in columns
        for text in _texts(value)
    ]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.encode("utf-8", "replace").decode()
    elif isinstance(value, dict | list):
        inner: Iterable[object] = value.values() if isinstance(value, dict) else value
        for part in inner:
            yield from _texts(part)


def _of_json_lines(data: bytes) -> list[dict[str, object]]:
    rows = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        value = exact_value_of_bytes(line)
        if not isinstance(value, dict):
            raise ValueError(f"line {number} holds {type(value).__name__}, expected an object")
        rows.append(value)
    return rows


def _of_parquet(data: bytes) -> list[dict[str, object]]:
    return pq.read_table(pa.BufferReader(data)).to_pylist()


def _of_text(data: bytes) -> list[dict[str, object]]:
    return [{"text": text} for text in _BLANK_LINES.split(data.decode("utf-8-sig")) if text.strip()]


_READERS = {".jsonl": _of_json_lines, ".parquet": _of_parquet, ".txt": _of_text}
