"""Blocks in memory: lines of JSON that are parsed when their rows are asked for, and Arrow tables."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import BinaryIO, Protocol

import orjson
import pyarrow as pa

from dataflow_assets.batch import ColumnType, values_of
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.jsonl import parsed_line
from dataflow_assets.torch.order import Numbers

Rows = list[dict[str, object]]
_PIECE_BYTES = 1 << 16
_DIGITS_ALONE = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_BEYOND_64_BITS = b"0" * 19


class OpenedBlock(Protocol):
    """Rows in memory, or read from a file that was checked."""

    def pieces(self, numbers: range, columns: Sequence[str]) -> Iterator[Rows]:
        """Consecutive rows, some at a time, as dicts of Python values; null for a column it has not."""
        ...

    def rows(self, numbers: Numbers, columns: Sequence[str]) -> Rows:
        """Rows by their numbers, in this order."""
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
        """Consecutive rows column by column, which costs less."""
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

    def __init__(
        self,
        opened: Callable[[], BinaryIO],
        name: str,
        begin: int,
        size: int,
        schema: Mapping[str, ColumnType],
    ) -> None:
        self._opened = opened
        self._name = name
        self._size = size
        self._names = list(schema)
        # orjson makes floats of integers beyond 64 bits, which only a JSON column can hold
        self._has_json = "json" in schema.values()
        self._edges, self._starts = [begin], [0]
        self._end = begin + size
        self._kept: tuple[int, Rows] = (0, [])

    def pieces(self, numbers: range, columns: Sequence[str]) -> Iterator[Rows]:
        """See OpenedBlock. What is left of the last piece is kept for the run that goes on there.

        No row is given out twice, for whoever gets it may change it.
        """
        first, kept = self._kept
        place, stop = numbers.start, numbers.stop
        if first == place and kept:
            found, kept = kept[: stop - place], kept[stop - place :]
            place += len(found)
            self._kept = place, kept
            yield self._with(found, columns)
        if place == stop:
            return
        with self._opened() as file:
            while place < stop:
                rows = self._rows_from(file, place)
                found, kept = rows[: stop - place], rows[stop - place :]
                place += len(found)
                self._kept = place, kept
                yield self._with(found, columns)

    def rows(self, numbers: Numbers, columns: Sequence[str]) -> Rows:
        """See OpenedBlock."""
        lines = self._lines
        return self._with(self._parse(b"\n".join([lines[number] for number in numbers.tolist()])), columns)

    def _with(self, rows: Rows, columns: Sequence[str]) -> Rows:
        if self._names == list(columns):
            return rows
        return [{name: row.get(name) for name in columns} for row in rows]

    @cached_property
    def _lines(self) -> list[bytes]:
        with self._opened() as file:
            file.seek(self._edges[0])
            return file.read(self._size).split(b"\n")

    def _rows_from(self, file: BinaryIO, place: int) -> Rows:
        """The rows from one on to the end of its piece; the pieces before it are counted once."""
        number = bisect_right(self._starts, place) - 1
        while True:
            data = _whole_lines(file, self._edges[number], self._end)
            is_last_known = number + 1 == len(self._edges)
            if not is_last_known or self._starts[number] == place:
                rows = self._parse(data[:-1])
                self._know(number, len(data), len(rows))
                return rows[place - self._starts[number] :]
            self._know(number, len(data), data.count(b"\n"))
            number = bisect_right(self._starts, place) - 1

    def _know(self, number: int, size: int, rows: int) -> None:
        if number + 1 == len(self._edges):
            self._edges.append(self._edges[number] + size)
            self._starts.append(self._starts[number] + rows)

    def _parse(self, lines: bytes) -> Rows:
        """The rows of these lines, parsed at once where all are such as orjson reads exactly."""
        if not self._has_json or _BEYOND_64_BITS not in lines.translate(_DIGITS_ALONE):
            try:
                return orjson.loads(b"[%b]" % lines.replace(b"\n", b","))
            except orjson.JSONDecodeError:  # a lone surrogate
                pass
        try:
            return [parsed_line(line) for line in lines.split(b"\n")]  # pyright: ignore[reportReturnType]
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{self._name} has a line that is no JSON: {error}") from error


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
