"""CSV and TSV to chunks: the first record is the header, every value is the string that stands there."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import BadRecord, BrokenInput, Chunk, raw_text
from dataflow_assets.sources.columns import final_names, table_of_arrays
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.encoding import utf8_blocks
from dataflow_assets.sources.lines import line_blocks, too_long_reason
from dataflow_assets.sources.spec import SourceSpec

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_MAX_C_LONG = 2**31 - 1


class _Lines:
    """The lines of a file as the csv module wants them; remembers those of the last chunk and record."""

    def __init__(self, file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> None:
        self.file = file.name
        self.max_line_bytes = spec.max_line_bytes
        blocks = utf8_blocks(file.path, file.name, file.compression, spec, chunk_bytes)
        self.blocks = line_blocks(blocks, spec.max_line_bytes)
        self.number = 0
        self.first_kept = 1
        self.kept: list[str] = []
        self.odd: dict[int, str] = {}
        self.block_end = 0

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks:
            self.block_end = block.first + len(block.lines) - 1
            for number, size, _ in block.too_long:
                self.odd[number] = too_long_reason(size, self.max_line_bytes)
            for line in block.lines:
                self.number += 1
                text = self._text(line) + "\n"
                self.kept.append(text)
                yield text.replace("\0", "")

    def _text(self, line: bytes) -> str:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("utf-8", "surrogateescape")
            self.odd[self.number] = "invalid UTF-8"
        if "\0" in text:
            self.odd[self.number] = "a NUL character"
        return text

    def reason(self, first: int, last: int) -> str | None:
        """Why the first of these lines that cannot be read cannot, or None."""
        if not self.odd:
            return None
        return next((self.odd[number] for number in range(first, last + 1) if number in self.odd), None)

    def bad(self, first: int, last: int, reason: str) -> BadRecord:
        """The record on these lines as a bad one."""
        text = "".join(self.kept[first - self.first_kept : last - self.first_kept + 1])
        raw = text.removesuffix("\n").removesuffix("\r").encode("utf-8", "surrogateescape")
        span = f"{'; ' if ':' in reason else ': '}lines {first} to {last}" if last > first else ""
        return BadRecord(self.file, first, reason + span, raw_text(raw))

    def forget(self, upto: int) -> None:
        """Lets go of the lines up to this one."""
        del self.kept[: upto - self.first_kept + 1]
        self.first_kept = upto + 1
        self.odd = {number: reason for number, reason in self.odd.items() if number > upto}


class _Records:
    """The records of a file, one after another, with the lines that each stands on."""

    def __init__(self, lines: _Lines, delimiter: str, max_cell_chars: int) -> None:
        self.lines = lines
        self.reader = csv.reader(lines, delimiter=delimiter, strict=True)
        self.max_cell_chars = max_cell_chars
        self.last = 0

    def next(self) -> tuple[int, list[str], str | None] | None:
        """First line, fields, and why it cannot be read; None at the end of the file."""
        first = self.last + 1
        reason = None
        fields: list[str] = []
        try:
            fields = next(self.reader)
        except StopIteration:
            return None
        except csv.Error as error:
            reason = _reason(error, self.max_cell_chars)
        self.last = self.reader.line_num
        return first, fields, self.lines.reason(first, self.last) or reason


def _reason(error: csv.Error, max_cell_chars: int) -> str:
    text = str(error)
    if "unexpected end of data" in text:
        return "a quote is opened and never closed"
    if "field larger" in text:
        limit = f"the {max_cell_chars} of source.max_line_bytes"
        return f"a cell is too long: more than {limit}; is a quote not closed?"
    if "new-line character" in text:
        return "a carriage return outside quotes"
    return f"malformed: {text}"


@contextmanager
def _cell_limit(chars: int) -> Iterator[None]:
    """The csv module's limit, which is one for the whole process, while a chunk is parsed."""
    before = csv.field_size_limit(min(chars, _MAX_C_LONG))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_delimited(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """The rows of the file. Raises SourceError for a header with empty or equal names."""
    lines = _Lines(file, spec, chunk_bytes)
    records = _Records(lines, _DELIMITERS[file.format], spec.max_line_bytes)
    with _cell_limit(spec.max_line_bytes):
        header = _header(records, file.name)
    if header is None:
        return
    names = final_names(header, file.name, spec)
    _check_columns(header, file.name, spec)
    places = {name: place for place, name in enumerate(header)}
    ended = False
    while not ended:
        broken = None
        rows: list[list[str]] = []
        numbers: list[int] = []
        bad: list[BadRecord] = []
        try:
            with _cell_limit(spec.max_line_bytes):
                ended = _read_block(records, len(header), rows, numbers, bad)
        except BrokenInput as error:
            broken = error
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        arrays = [(new, _strings(columns[places[old]])) for old, new in names.items()]
        yield Chunk(table_of_arrays(arrays, len(rows)), pa.array(numbers, pa.int64()), bad)
        if broken:
            raise broken
        lines.forget(records.last)


def _read_block(
    records: _Records, width: int, rows: list[list[str]], numbers: list[int], bad: list[BadRecord]
) -> bool:
    """Adds the records up to the end of a block of lines; True at the end of the file."""
    lines = records.lines
    while (record := records.next()) is not None:
        first, fields, reason = record
        if reason is None and len(fields) == width:
            rows.append(fields)
            numbers.append(first)
        elif (reason is None and width > 1 and not "".join(fields).strip() and len(fields) < 2) or (
            reason is None and not fields
        ):
            pass
        else:
            reason = reason or f"wrong number of fields: {len(fields)}, expected the {width} of the header"
            bad.append(lines.bad(first, records.last, reason))
        if records.last >= lines.block_end:
            return False
    return True


def _strings(values: tuple[str, ...]) -> tuple[pa.Array, ColumnType | None]:
    return (pa.array(values, pa.large_string()), "string") if values else (pa.nulls(0), None)


def _header(records: _Records, file: str) -> list[str] | None:
    """The names of the first record that is not blank; None in an empty file."""
    while (record := records.next()) is not None:
        first, names, reason = record
        if reason is not None:
            raise SourceError(f"source {file}, line {first}: the header cannot be read: {reason}")
        if "".join(names).strip():
            _check_header(names, file, first)
            return names
    return None


def _check_header(names: list[str], file: str, line: int) -> None:
    where = f"source {file}, line {line}"
    if empty := [place for place, name in enumerate(names, 1) if not name.strip()]:
        raise SourceError(
            f"{where}: column {empty[0]} of the header has no name; expected a name for each of the "
            f"{len(names)} columns. Is the first line a header?"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SourceError(f"{where}: the header names {twice[0]!r} more than once; expected different names")


def _check_columns(header: list[str], file: str, spec: SourceSpec) -> None:
    if missing := [name for name in spec.columns or [] if name not in header]:
        raise SourceError(
            f"source {file}: there is no column {missing[0]!r}, which `source.columns` asks for; "
            f"the file has {', '.join(header)}"
        )
