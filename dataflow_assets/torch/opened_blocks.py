"""Blocks in memory: lines of JSON that are parsed when their rows are asked for, and Arrow tables."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import orjson
import pyarrow as pa

from dataflow_assets.batch import ColumnType, values_of
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.jsonl import parsed_line
from dataflow_assets.torch.order import Numbers

Rows = list[dict[str, object]]
_PIECE_BYTES = 1 << 18
_DIGITS_ALONE = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_BEYOND_64_BITS = b"0" * 19


class OpenedBlock(Protocol):
    """Rows in memory. `numbers` is a range of step 1, or any of their numbers in any order."""

    def rows(self, numbers: range | Numbers, columns: Sequence[str]) -> Rows:
        """These rows as dicts of Python values with these columns, null where the block has not one."""
        ...

    def values(self, numbers: range | Numbers, columns: Sequence[str]) -> dict[str, list]:
        """The same column by column."""
        ...


class Table:
    """An Arrow table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def rows(self, numbers: range | Numbers, columns: Sequence[str]) -> Rows:
        """See OpenedBlock."""
        values = self.values(numbers, columns)
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]

    def values(self, numbers: range | Numbers, columns: Sequence[str]) -> dict[str, list]:
        """See OpenedBlock."""
        if isinstance(numbers, range):
            some = self._table.slice(numbers.start, len(numbers))
        else:
            some = self._table.take(pa.array(numbers))
        there = some.column_names
        return {name: values_of(some, name) if name in there else [None] * len(numbers) for name in columns}


class JsonLines:
    """Lines of JSON as they are in the file."""

    def __init__(self, data: bytes, schema: Mapping[str, ColumnType], rows: int) -> None:
        self._data = data
        self._names = list(schema)
        # orjson makes floats of integers beyond 64 bits, which only a JSON column can hold
        has_json = "json" in schema.values()
        self._may_be_large = has_json and _BEYOND_64_BITS in data.translate(_DIGITS_ALONE)
        self._parsed: tuple[int, Rows, int] | None = None
        self._rows = rows

    def rows(self, numbers: range | Numbers, columns: Sequence[str]) -> Rows:
        """See OpenedBlock."""
        found = self._found(numbers)
        if self._names == list(columns):
            return found
        return [{name: row.get(name) for name in columns} for row in found]

    def values(self, numbers: range | Numbers, columns: Sequence[str]) -> dict[str, list]:
        """See OpenedBlock."""
        found = self._found(numbers)
        there = set(self._names)
        return {
            name: [row[name] for row in found] if name in there else [None] * len(found) for name in columns
        }

    def _found(self, numbers: range | Numbers) -> Rows:
        if isinstance(numbers, range) and "_lines" not in self.__dict__:
            return self._run(numbers)
        lines = self._lines
        return self._parse([lines[number] for number in numbers])

    @cached_property
    def _lines(self) -> list[bytes]:
        lines, self._data = self._data.split(b"\n"), b""
        return lines

    def _run(self, numbers: range) -> Rows:
        """Consecutive rows, parsed in pieces; what is left of a piece is kept for the run that goes on there.

        No row is given out twice, for whoever gets it may change it.
        """
        found: Rows = []
        edges, starts = self._pieces
        place = numbers.start
        while place < numbers.stop:
            piece = bisect_right(starts, place) - 1
            if self._parsed is None or self._parsed[0] != piece or self._parsed[2] > place:
                lines = self._data[edges[piece] : edges[piece + 1] - 1]
                self._parsed = piece, self._parse(lines), starts[piece]
            rows, first = self._parsed[1], starts[piece]
            some = rows[place - first : numbers.stop - first]
            found += some
            place += len(some)
            self._parsed = piece, rows, place
        return found

    @cached_property
    def _pieces(self) -> tuple[list[int], list[int]]:
        """The edges of pieces of 256 KiB or one line, in bytes, and the row with which each begins."""
        data, edges, starts = self._data, [0], [0]
        while edges[-1] < len(data):
            edges.append(data.find(b"\n", edges[-1] + _PIECE_BYTES) + 1 or len(data))
            starts.append(starts[-1] + data.count(b"\n", edges[-2], edges[-1]))
        if starts.pop() != self._rows:
            raise CorruptFile(f"{starts[-1]} lines where {self._rows} rows were committed")
        return edges, starts

    def _parse(self, lines: list[bytes] | bytes) -> Rows:
        """The rows of these lines, parsed at once where all are such as orjson reads exactly."""
        if not self._may_be_large:
            together = b",".join(lines) if isinstance(lines, list) else lines.replace(b"\n", b",")
            try:
                return orjson.loads(b"[%b]" % together)
            except orjson.JSONDecodeError:  # a lone surrogate
                pass
        each = lines.split(b"\n") if isinstance(lines, bytes) else lines
        try:
            return [parsed_line(line) for line in each]  # pyright: ignore[reportReturnType]
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"a line is no JSON: {error}") from error
