"""JSON files to chunks while streaming: an array of objects, or objects one after another."""

import codecs
import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.sources.chunk import BadRecord, BrokenInput, Chunk, raw_text
from dataflow_assets.sources.columns import UnfitRows, final_names, table_of_values
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.encoding import utf8_blocks
from dataflow_assets.sources.json_line import not_a_row
from dataflow_assets.sources.spec import SourceSpec

_SPACE = re.compile(r"[ \t\n\r]*")
_NEAR_END_CHARS = 16


class _Element(NamedTuple):
    """One value of the file: its record number, its text in the file, why it is no row."""

    number: int
    value: object
    text: str
    reason: str | None


class _Incomplete(Exception):
    """The buffer ends inside a value."""


class _Scanner:
    """The text that is not used up, and where in the file's structure it begins."""

    def __init__(self, file: str, max_record_chars: int) -> None:
        self.file = file
        self.max_record_chars = max_record_chars
        self.buffer = ""
        self.place = 0
        self.chars_before = 0
        self.records = 0
        self.in_array = False
        self.needs_comma = False
        self.after_comma = False
        self.unfit: list[str] = []
        self.decoder = json.JSONDecoder(parse_constant=self._constant, parse_float=self._float)

    def feed(self, text: str) -> None:
        """Adds text and drops what is used up."""
        self.buffer = self.buffer[self.place :] + text
        self.chars_before += self.place
        self.place = 0

    def elements(self, ended: bool) -> Iterator[_Element]:
        """The whole values of the buffer. Raises BrokenInput where the structure breaks."""
        self._skip_space()
        while self.place < len(self.buffer):
            if not self._punctuation():
                try:
                    element = self._element(ended)
                except _Incomplete:
                    self._check_size(len(self.buffer))
                    return
                yield element
            self._skip_space()
        if ended and self.in_array:
            raise self._broken(self.place, "the file ends inside its array")

    def _skip_space(self) -> None:
        match = _SPACE.match(self.buffer, self.place)
        self.place = match.end() if match else self.place

    def _punctuation(self) -> bool:
        """Takes a bracket or comma of the outer structure; False where a value is due."""
        char = self.buffer[self.place]
        if not self.in_array:
            if char != "[":
                return False
            self.in_array, self.needs_comma, self.after_comma = True, False, False
        elif char == "]" and not self.after_comma:
            self.in_array = False
        elif self.needs_comma:
            if char != ",":
                raise self._broken(self.place, f"found {char!r} where `,` or `]` is due")
            self.needs_comma, self.after_comma = False, True
        else:
            return False
        self.place += 1
        return True

    def _element(self, ended: bool) -> _Element:
        start = self.place
        self.unfit.clear()
        try:
            value, end = self.decoder.raw_decode(self.buffer, start)
        except json.JSONDecodeError as error:
            if not ended and self._may_go_on(error):
                raise _Incomplete from error
            raise self._broken(error.pos, f"malformed JSON ({error.msg})") from error
        except RecursionError as error:
            raise self._broken(start, "the record that begins here is nested too deep") from error
        except ValueError as error:
            raise self._broken(
                start, "a number of the record that begins here has too many digits"
            ) from error
        if end == len(self.buffer) and not ended and self.buffer[end - 1] not in '}]"':
            raise _Incomplete
        self._check_size(end)
        self.place = end
        self.needs_comma, self.after_comma = self.in_array, False
        self.records += 1
        reason = self.unfit[0] if self.unfit else not_a_row(value)
        return _Element(self.records, value, self.buffer[start:end], reason)

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos >= len(self.buffer) - _NEAR_END_CHARS

    def _constant(self, constant: str) -> None:
        self.unfit.append(f"{constant} is not JSON")

    def _float(self, text: str) -> float:
        value = float(text)
        if value - value != 0.0:
            self.unfit.append(f"a number is beyond a double: {text[:40]}")
        return value

    def _check_size(self, end: int) -> None:
        if end - self.place > self.max_record_chars:
            raise self._broken(
                self.place,
                f"the record that begins here is larger than the {self.max_record_chars} of "
                "`source.max_line_bytes` (if the rows are inside one object, take their array out of it)",
            )

    def _broken(self, place: int, what: str) -> BrokenInput:
        return BrokenInput(
            f"source {self.file}, character {self.chars_before + place + 1}: {what}; "
            "expected an array of objects, or objects one after another, and nothing can be read past this. "
            "If the file has one object a line, set `source.format: jsonl`"
        )


class _Text(NamedTuple):
    """A piece of the file; `broken` is the error that ended it."""

    text: str
    ended: bool
    broken: BrokenInput | None


def read_json(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """The records of the file. Raises BrokenInput, after those before it, where it cannot be read on."""
    scanner = _Scanner(file.name, spec.max_line_bytes)
    pending = ""
    for text, ended, broken in _texts(file, spec, chunk_bytes):
        pending += text
        if len(pending) < len(scanner.buffer) - scanner.place and not ended and not broken:
            continue  # a large record is parsed again only when the buffer has doubled
        scanner.feed(pending)
        pending = ""
        elements: list[_Element] = []
        try:
            elements.extend(scanner.elements(ended))
        except BrokenInput as error:
            broken = error
        yield _chunk(elements, file.name, spec)
        if broken:
            raise broken


def _texts(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[_Text]:
    """The text of the file; invalid bytes stand as surrogates."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    try:
        for block in utf8_blocks(file.path, file.name, file.compression, spec, chunk_bytes):
            yield _Text(decoder.decode(block), False, None)
    except BrokenInput as error:
        yield _Text("", False, error)
    else:
        yield _Text(decoder.decode(b"", True), True, None)


def _chunk(elements: list[_Element], file: str, spec: SourceSpec) -> Chunk:
    bad = {
        element.number: reason for element in elements if (reason := element.reason or _invalid(element.text))
    }
    while True:
        good = [element for element in elements if element.number not in bad]
        try:
            table = _table([_row(element) for element in good], file, spec)
        except UnfitRows as unfit:
            bad.update({good[position].number: reason for position, reason in unfit.reasons.items()})
        else:
            records = [
                BadRecord(file, element.number, bad[element.number], _raw(element.text))
                for element in elements
                if element.number in bad
            ]
            return Chunk(table, pa.array([element.number for element in good], pa.int64()), records)


def _table(rows: list[dict[str, object]], file: str, spec: SourceSpec) -> pa.Table:
    names = final_names(dict.fromkeys(chain.from_iterable(rows)), file, spec)
    return table_of_values({name: [row.get(name) for row in rows] for name in names}, names, len(rows))


def _row(element: _Element) -> dict[str, object]:
    assert isinstance(element.value, dict)
    return element.value


def _invalid(text: str) -> str | None:
    return None if text.isascii() or _encodes(text) else "invalid UTF-8: inside the record"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _raw(text: str) -> str:
    return raw_text(text.encode("utf-8", "surrogateescape"))
