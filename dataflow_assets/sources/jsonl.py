"""JSON lines to chunks: one object a line, every value exact."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.sources.chunk import BadRecord, Chunk, raw_text
from dataflow_assets.sources.columns import UnfitRows, final_names, table_of_values
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.encoding import utf8_blocks
from dataflow_assets.sources.json_line import NotJson, exact_value_of_bytes, not_a_row
from dataflow_assets.sources.lines import LineBlock, line_blocks, too_long_reason
from dataflow_assets.sources.spec import SourceSpec

_ROUNDED = 2.0**63
_ROUNDED_INSIDE = r"[:,\[]-?[0-9](\.[0-9]+)?e[+]?[0-9]"


class _Rows(NamedTuple):
    """The objects of a block, with the line and the number of each."""

    rows: list[dict[str, object]]
    lines: Sequence[bytes]
    numbers: Sequence[int]
    bad: list[BadRecord]


def read_jsonl(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """The rows of the file; blank lines are counted and skipped."""
    blocks = utf8_blocks(file.path, file.name, file.compression, spec, chunk_bytes)
    for block in line_blocks(blocks, spec.max_line_bytes):
        yield chunk_of_lines(block, file.name, spec)


def chunk_of_lines(block: LineBlock, file: str, spec: SourceSpec) -> Chunk:
    """The rows of a block of lines, and its bad lines in order."""
    found = _objects(block, file)
    found.bad.extend(
        BadRecord(file, number, too_long_reason(size, spec.max_line_bytes), raw_text(head, size))
        for number, size, head in block.too_long
    )
    while True:
        try:
            table = _exact_table(found, file, spec)
        except UnfitRows as unfit:
            found = _without(found, unfit, file)
        else:
            found.bad.sort(key=lambda record: record.line)
            return Chunk(table, pa.array(found.numbers, pa.int64()), found.bad)


def _objects(block: LineBlock, file: str) -> _Rows:
    """The object of each line: all at once, or line by line where one of them is no object."""
    try:
        rows = list(map(orjson.loads, block.lines))
        if set(map(type, rows)) == {dict}:
            return _Rows(rows, block.lines, range(block.first, block.first + len(rows)), [])
    except orjson.JSONDecodeError:
        pass
    return _line_by_line(block, file)


def _line_by_line(block: LineBlock, file: str) -> _Rows:
    rows, lines, numbers, bad = [], [], [], []
    for number, line in enumerate(block.lines, block.first):
        try:
            value = _value(line)
            reason = not_a_row(value)
        except NotJson as error:
            if not line.strip():
                continue
            value, reason = None, str(error)
        if reason is None:
            rows.append(value)
            lines.append(line)
            numbers.append(number)
        else:
            bad.append(BadRecord(file, number, reason, raw_text(line.removesuffix(b"\r"))))
    return _Rows(rows, lines, numbers, bad)


def _value(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return exact_value_of_bytes(line)


def _exact_table(found: _Rows, file: str, spec: SourceSpec) -> pa.Table:
    """The table of the rows; rows whose integers orjson may have rounded are parsed again."""
    names = final_names(dict.fromkeys(chain.from_iterable(found.rows)), file, spec)
    values = _columns(found.rows, names)
    table = table_of_values(values, names, len(found.rows))
    rounded = _rounded_at_top(values) | _rounded_inside(table)
    if not rounded:
        return table
    rows = list(found.rows)
    for position in rounded:
        rows[position] = _exact_row(found.lines[position], rows[position])
    return table_of_values(_columns(rows, names), names, len(rows))


def _columns(rows: list[dict[str, object]], names: dict[str, str]) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {}
    for name in names:
        try:
            columns[name] = [row[name] for row in rows]
        except KeyError:
            columns[name] = [row.get(name) for row in rows]
    return columns


def _rounded_at_top(values: dict[str, list[object]]) -> set[int]:
    """The rows with a number that may come of an integer beyond 64 bits."""
    return {
        position
        for column in values.values()
        if float in set(map(type, column))
        for position, value in enumerate(column)
        if type(value) is float and abs(value) >= _ROUNDED
    }


def _rounded_inside(table: pa.Table) -> set[int]:
    """The same for numbers inside nested values, which have an exponent in the JSON text."""
    rounded: set[int] = set()
    for field, column in zip(table.schema, table.columns, strict=True):
        if not field.metadata:
            continue
        found = pc.match_substring_regex(column, _ROUNDED_INSIDE)
        if pc.any(found).as_py():
            rounded.update(position for position, here in enumerate(found.to_pylist()) if here)
    return rounded


def _exact_row(line: bytes, row: dict[str, object]) -> dict[str, object]:
    try:
        value = exact_value_of_bytes(line)
    except NotJson:
        return row  # nested too deep for the exact parser, so it is set aside by its depth
    assert isinstance(value, dict)
    return value


def _without(found: _Rows, unfit: UnfitRows, file: str) -> _Rows:
    """The rows that fit; the others are bad."""
    bad = [
        BadRecord(file, found.numbers[position], reason, raw_text(found.lines[position]))
        for position, reason in unfit.reasons.items()
    ]
    kept = [position for position in range(len(found.rows)) if position not in unfit.reasons]
    return _Rows(
        [found.rows[position] for position in kept],
        [found.lines[position] for position in kept],
        [found.numbers[position] for position in kept],
        found.bad + bad,
    )
