"""Plain text to chunks: a row per line, or a row per file of a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import BadRecord, Chunk, raw_text
from dataflow_assets.sources.columns import final_names, table_of_arrays
from dataflow_assets.sources.discovery import SourceFile, display_name, kind_of
from dataflow_assets.sources.encoding import utf8_blocks
from dataflow_assets.sources.json_line import NotJson, utf8_text
from dataflow_assets.sources.lines import LineBlock, line_blocks, too_long_reason
from dataflow_assets.sources.spec import SourceSpec

_MAX_FILES = 4096
_HEAD_BYTES = 4 * 4096


def read_text(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """Column `text`; with `rows: file` also `file`, the name below the folder."""
    has = ("file", "text") if spec.rows == "file" else ("text",)
    if missing := [name for name in spec.columns or [] if name not in has]:
        raise SourceError(
            f"source {file.name}: there is no column {missing[0]!r}, which `source.columns` asks for; "
            f"text has {', '.join(has)}"
        )
    if spec.rows == "file":
        yield from _whole_files(file, spec, chunk_bytes)
        return
    blocks = utf8_blocks(file.path, file.name, file.compression, spec, chunk_bytes)
    for block in line_blocks(blocks, spec.max_line_bytes):
        yield _chunk_of_lines(block, file.name, spec)


def _chunk_of_lines(block: LineBlock, file: str, spec: SourceSpec) -> Chunk:
    texts, numbers = [], []
    bad = [
        BadRecord(file, number, too_long_reason(size, spec.max_line_bytes), raw_text(head, size))
        for number, size, head in block.too_long
    ]
    for number, line in enumerate(block.lines, block.first):
        try:
            text = utf8_text(line)
        except NotJson as error:
            bad.append(BadRecord(file, number, str(error), raw_text(line.removesuffix(b"\r"))))
            continue
        if line.strip():
            texts.append(text.removesuffix("\r"))
            numbers.append(number)
    bad.sort(key=lambda record: record.line)
    return _chunk({"text": texts}, numbers, bad, file, spec)


def _chunk(
    columns: dict[str, list[str]], numbers: list[int], bad: list[BadRecord], file: str, spec: SourceSpec
) -> Chunk:
    names = final_names(columns, file, spec)
    pairs = [(new, _strings(columns[old])) for old, new in names.items()]
    return Chunk(table_of_arrays(pairs, len(numbers)), pa.array(numbers, pa.int64()), bad)


def _strings(values: list[str]) -> tuple[pa.Array, ColumnType | None]:
    return (pa.array(values, pa.large_string()), "string") if values else (pa.nulls(0), None)


class _Content(NamedTuple):
    """What a file holds: all of it, or its size and head where it is too large."""

    content: bytes
    size: int


def _whole_files(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """A row per member, numbered in their order; members that are no text are bad."""
    columns: dict[str, list[str]] = {"file": [], "text": []}
    numbers: list[int] = []
    bad: list[BadRecord] = []
    size = 0
    for number, member in enumerate(file.members, 1):
        name = _member_name(file, member)
        found = _content(member, name, spec)
        reason, text = _text_of(found, spec)
        if reason is None:
            columns["file"].append(name)
            columns["text"].append(text)
            numbers.append(number)
        else:
            bad.append(BadRecord(name, number, reason, raw_text(found.content, found.size)))
        size += len(found.content)
        if size >= chunk_bytes or number % _MAX_FILES == 0:
            yield _chunk(columns, numbers, bad, file.name, spec)
            columns, numbers, bad, size = {"file": [], "text": []}, [], [], 0
    yield _chunk(columns, numbers, bad, file.name, spec)


def _member_name(file: SourceFile, member: Path) -> str:
    return display_name(member.relative_to(file.path)) if member != file.path else display_name(member.name)


def _content(member: Path, name: str, spec: SourceSpec) -> _Content:
    parts, size = [], 0
    for block in utf8_blocks(member, name, kind_of(member.name)[1], spec, 2**20):
        size += len(block)
        parts.append(block)
        if size > spec.max_line_bytes:
            parts = [b"".join(parts)[:_HEAD_BYTES]]
    return _Content(b"".join(parts), size)


def _text_of(found: _Content, spec: SourceSpec) -> tuple[str | None, str]:
    if found.size > spec.max_line_bytes:
        return too_long_reason(found.size, spec.max_line_bytes).replace("line", "file", 1), ""
    try:
        return None, found.content.decode()
    except UnicodeDecodeError as error:
        return f"invalid UTF-8: at byte {error.start + 1} of the file", ""
