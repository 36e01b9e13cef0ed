"""Packs pieces of a text into chunks: whole sentences up to a limit, with whole sentences repeated."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import regex

from dataflow_assets.operators.splitting.sizes import Characters, Size
from dataflow_assets.text.sentences import (
    Span,
    clause_spans,
    grapheme_spans,
    line_spans,
    sentence_spans,
)

_TABLE_ROW = regex.compile(r"^[^\S\n]*\|[^\n]*(?:\n|\Z)", regex.MULTILINE)


def chunk_spans(
    text: str,
    limit: int,
    overlap: int = 0,
    size_of: Callable[[str], Size] = Characters,
    sections: Sequence[Span] | None = None,
) -> Iterator[Span]:
    """The chunks of a text in order, none longer than `limit`, none across two of the `sections`.

    Without overlap they are the whole text; with it a chunk begins with whole pieces, of at most the
    size `overlap`, of the one before. Raises ValueError for one visible character beyond the limit.
    """
    size = size_of(text)
    pieces = list(_pieces(text, size, limit))
    first = 0
    for _, end in [(0, len(text))] if sections is None else sections:
        last = bisect_right(pieces, end, first, key=lambda piece: piece[1])
        yield from _Packing(pieces[first:last], size, limit).chunks(overlap)
        first = last


class _Packing:
    """The pieces of one section, and how long runs of them are."""

    def __init__(self, pieces: Sequence[Span], size: Size, limit: int) -> None:
        self._pieces = pieces
        self._size = size
        self._limit = limit
        self._ends = list(accumulate(map(size.of, pieces), initial=0))

    def chunks(self, overlap: int) -> Iterator[Span]:
        first = 0
        while first < len(self._pieces):
            last = self._last(first)
            yield self._span(first, last)
            first = self._next_first(first, last, overlap)

    def _last(self, first: int) -> int:
        """The last piece that a chunk from `first` can hold."""
        last = max(first, bisect_right(self._ends, self._ends[first] + self._limit) - 2)
        while not self._fits(first, last, self._limit):
            if last == first:
                start, end = self._pieces[first]
                raise ValueError(
                    f"one visible character at {start} with {end - start} code points is longer "
                    f"than the limit of {self._limit}"
                )
            last -= 1
        return last

    def _next_first(self, first: int, last: int, overlap: int) -> int:
        """The piece that the next chunk begins with: one new piece must fit behind what is repeated."""
        begin = following = last + 1
        while (
            overlap > 0
            and following < len(self._pieces)
            and begin - 1 > first
            and self._fits(begin - 1, last, overlap)
            and self._fits(begin - 1, following, self._limit)
        ):
            begin -= 1
        return begin

    def _fits(self, first: int, last: int, limit: int) -> bool:
        if self._size.adds_up:
            return self._ends[last + 1] - self._ends[first] <= limit
        return self._size.exact(self._span(first, last)) <= limit

    def _span(self, first: int, last: int) -> Span:
        return self._pieces[first][0], self._pieces[last][1]


def _pieces(text: str, size: Size, limit: int) -> Iterator[Span]:
    """What is not cut further, none beyond the limit: sentences, table rows, code blocks, or their parts."""
    for span in _whole_spans(text):
        yield from _fitting(text, span, size, limit)


def _whole_spans(text: str) -> Iterator[Span]:
    """Sentences, lines and code blocks; what is cut within a table row is put together again."""
    rows = (found.span() for found in _TABLE_ROW.finditer(text))
    row = next(rows, None)
    for start, end in sentence_spans(text):
        while row is not None and row[1] <= start:
            row = next(rows, None)
        if row is None or start < row[0] or end > row[1]:
            yield start, end
        elif end == row[1]:
            yield row


def _fitting(text: str, span: Span, size: Size, limit: int) -> Iterator[Span]:
    """The span, or its lines, clauses or visible characters where it is too long."""
    if size.exact(span) <= limit:
        yield span
        return
    for cut in (line_spans, clause_spans):
        parts = list(cut(text, span))
        if len(parts) > 1:
            for part in parts:
                yield from _fitting(text, part, size, limit)
            return
    graphemes = list(grapheme_spans(text, span))
    yield from _Packing(graphemes, size, limit).chunks(0)
