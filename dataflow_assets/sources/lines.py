r"""Lines of a byte stream, in blocks, split at `\n` alone; a line without end is streamed past."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_LINES = 65_536
_HEAD_BYTES = 4 * 4096


class TooLong(NamedTuple):
    """A line that is longer than allowed: its 1-based number, its bytes, and their first ones."""

    number: int
    size: int
    head: bytes


class LineBlock(NamedTuple):
    r"""Lines without their `\n` (a `\r` before it stays); `first` is the number of the first.

    A line that is too long stands as an empty line in `lines`, and in `too_long`.
    """

    first: int
    lines: list[bytes]
    too_long: list[TooLong]


class _Tail:
    """The line that the last block left open; past the limit only its head is kept."""

    def __init__(self, max_line_bytes: int) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.max_line_bytes = max_line_bytes

    @property
    def too_long(self) -> bool:
        return self.size > self.max_line_bytes

    def add(self, part: bytes) -> None:
        self.size += len(part)
        self.parts.append(part)
        if self.too_long:
            self.parts = [b"".join(self.parts)[:_HEAD_BYTES]]


def line_blocks(blocks: Iterable[bytes], max_line_bytes: int) -> Iterator[LineBlock]:
    r"""The lines of the stream, at most 65,536 a block; the last line needs no `\n`."""
    first = 1
    tail = _Tail(max_line_bytes)
    for block in blocks:
        end = block.find(b"\n")
        if end < 0:
            tail.add(block)
            continue
        tail.add(block[:end])
        last = block.rfind(b"\n")
        rest = block[end + 1 : last].split(b"\n") if last > end else []
        yield from _limited(first, tail, rest)
        first += 1 + len(rest)
        tail = _Tail(max_line_bytes)
        tail.add(block[last + 1 :])
    if tail.size:
        yield from _limited(first, tail, [])


def _limited(first: int, tail: _Tail, rest: list[bytes]) -> Iterator[LineBlock]:
    """The finished tail and the lines after it, without those that are too long."""
    limit = tail.max_line_bytes
    too_long = [TooLong(first, tail.size, b"".join(tail.parts))] if tail.too_long else []
    lines = [b"" if tail.too_long else b"".join(tail.parts), *rest]
    if rest and max(map(len, rest)) > limit:
        for place, line in enumerate(lines):
            if len(line) > limit:
                too_long.append(TooLong(first + place, len(line), line[:_HEAD_BYTES]))
                lines[place] = b""
    for start in range(0, len(lines), MAX_LINES):
        part = lines[start : start + MAX_LINES]
        here = range(first + start, first + start + len(part))
        yield LineBlock(here.start, part, [each for each in too_long if each.number in here])


def too_long_reason(size: int, limit: int) -> str:
    """Why such a line is bad."""
    return f"the line is too long: {size} bytes, more than the {limit} of source.max_line_bytes"
