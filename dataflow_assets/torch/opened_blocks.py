"""Blocks in memory: lines of JSON that are parsed when their rows are asked for, and Arrow tables."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter, methodcaller
from typing import Any, BinaryIO, Protocol

import msgspec
import pyarrow as pa

from dataflow_assets.batch import values_of
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.jsonl import parsed_line
from dataflow_assets.torch.order import Numbers

Rows = list[dict[str, object]]
_PIECE_BYTES = 1 << 16
_DICTS = msgspec.json.Decoder()
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')


class OpenedBlock(Protocol):
    """Rows in memory, or read from a file that was checked."""

    def pieces(self, numbers: range, columns: Sequence[str]) -> Iterator[Rows]:
        """Consecutive rows, some at a time, as dicts of Python values; null for a column it has not."""
        ...

    def rows(self, numbers: Numbers, columns: Sequence[str]) -> Rows:
        """Rows by their numbers, in this order."""
        ...

    def values(self, numbers: range, columns: Sequence[str]) -> dict[str, list]:
        """Consecutive rows column by column, which costs less."""
        ...


class Table:
    """An Arrow table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def pieces(self, numbers: range, columns: Sequence[str]) -> Iterator[Rows]:
        """See OpenedBlock; all at once."""
        yield _rows_of(self.values(numbers, columns))

    def rows(self, numbers: Numbers, columns: Sequence[str]) -> Rows:
        """See OpenedBlock."""
        return _rows_of(_values(self._table.take(pa.array(numbers)), columns))

    def values(self, numbers: range, columns: Sequence[str]) -> dict[str, list]:
        """See OpenedBlock."""
        return _values(self._table.slice(numbers.start, len(numbers)), columns)


def _values(table: pa.Table, columns: Sequence[str]) -> dict[str, list]:
    there = table.column_names
    return {name: values_of(table, name) if name in there else [None] * len(table) for name in columns}


def _rows_of(values: Mapping[str, list]) -> Rows:
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


class JsonLines:
    """Lines of JSON that were checked, in a file or in memory: `opened` opens them anew.

    Consecutive rows are read and parsed in pieces of 64 KiB, the size at which a row costs least; for rows in
    any other order all lines are held as they are in the file.
    """

    def __init__(self, opened: Callable[[], BinaryIO], name: str, begin: int, size: int) -> None:
        self._opened = opened
        self._name = name
        self._size = size
        self._edges, self._starts = [begin], [0]
        self._end = begin + size
        self._kept: tuple[int, msgspec.json.Decoder, list[Any]] = (0, _DICTS, [])

    def pieces(self, numbers: range, columns: Sequence[str]) -> Iterator[Rows]:
        """See OpenedBlock."""
        for rows in self._pieces(numbers, _DICTS):
            yield _with(rows, columns)

    def rows(self, numbers: Numbers, columns: Sequence[str]) -> Rows:
        """See OpenedBlock."""
        lines = self._lines
        asked = b"\n".join([lines[number] for number in numbers.tolist()])
        return _with(self._parse(asked, _DICTS), columns)

    def values(self, numbers: range, columns: Sequence[str]) -> dict[str, list]:
        """See OpenedBlock. Nothing is made of the columns that are not asked for."""
        decoder, getters = _columns_by(tuple(columns))
        found: dict[str, list] = {name: [] for name in columns}
        for records in self._pieces(numbers, decoder):
            for name, value_of in zip(columns, getters, strict=True):
                found[name] += map(value_of, records)
        return found

    def _pieces(self, numbers: range, decoder: msgspec.json.Decoder) -> Iterator[list[Any]]:
        """Consecutive rows as a decoder has them.

        What is left of the last piece is kept for the run that goes on there. No row is given out twice, for
        whoever gets it may change it.
        """
        first, decoded_by, kept = self._kept
        place, stop = numbers.start, numbers.stop
        if first == place and decoded_by is decoder and kept:
            found, kept = kept[: stop - place], kept[stop - place :]
            place += len(found)
            self._kept = place, decoder, kept
            yield found
        if place == stop:
            return
        with self._opened() as file:
            while place < stop:
                rows = self._rows_from(file, place, decoder)
                found, kept = rows[: stop - place], rows[stop - place :]
                place += len(found)
                self._kept = place, decoder, kept
                yield found

    @cached_property
    def _lines(self) -> list[bytes]:
        with self._opened() as file:
            file.seek(self._edges[0])
            return file.read(self._size).split(b"\n")

    def _rows_from(self, file: BinaryIO, place: int, decoder: msgspec.json.Decoder) -> list[Any]:
        """The rows from one on to the end of its piece; the pieces before it are counted once."""
        number = bisect_right(self._starts, place) - 1
        while True:
            data = _whole_lines(file, self._edges[number], self._end)
            is_last_known = number + 1 == len(self._edges)
            if not is_last_known or self._starts[number] == place:
                rows = self._parse(data[:-1], decoder)
                self._know(number, len(data), len(rows))
                return rows[place - self._starts[number] :]
            self._know(number, len(data), data.count(b"\n"))
            number = bisect_right(self._starts, place) - 1

    def _know(self, number: int, size: int, rows: int) -> None:
        if number + 1 == len(self._edges):
            self._edges.append(self._edges[number] + size)
            self._starts.append(self._starts[number] + rows)

    def _parse(self, lines: bytes, decoder: msgspec.json.Decoder) -> list[Any]:
        """The rows of these lines, integers of any size exact."""
        try:
            return decoder.decode_lines(lines)
        except (msgspec.MsgspecError, RecursionError):  # a lone surrogate, or nested deeper than Python goes
            pass
        try:
            rows = list(map(parsed_line, lines.split(b"\n")))
            return rows if decoder is _DICTS else msgspec.convert(rows, list[decoder.type])
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{self._name} has a line that is no JSON: {error}") from error


@lru_cache(maxsize=64)
def _columns_by(columns: tuple[str, ...]) -> tuple[msgspec.json.Decoder, list[Callable[[Any], Any]]]:
    """Decodes these columns of a row alone, None where it has not one; and what takes each from that."""
    if any(_ESCAPED.search(name) for name in columns):  # msgspec has no fields of such names
        return _DICTS, [methodcaller("get", name) for name in columns]
    fields = {f"c{number}": name for number, name in enumerate(columns)}
    record = msgspec.defstruct("Record", [(field, Any, None) for field in fields], rename=fields, gc=False)
    return msgspec.json.Decoder(record), [attrgetter(field) for field in fields]


def _with(rows: Rows, columns: Sequence[str]) -> Rows:
    if not rows or list(rows[0]) == list(columns):
        return rows
    return [{name: row.get(name) for name in columns} for row in rows]


def _whole_lines(file: BinaryIO, begin: int, end: int) -> bytes:
    """The lines from here that 64 KiB hold, or one that is longer."""
    size = _PIECE_BYTES
    while True:
        file.seek(begin)
        data = file.read(min(size, end - begin))
        whole = data.rfind(b"\n") + 1
        if whole:
            return data[:whole]
        if begin + len(data) >= end or not data:
            raise CorruptFile(f"the lines end in mid-line at byte {begin + len(data)}")
        size *= 4
