"""Where a text may be cut: code blocks, lines and sentences, else clauses, else visible characters."""

from collections.abc import Iterator

import regex

Span = tuple[int, int]

_CLOSING = r"\"'”’」』）)\]】》"
_FENCE = regex.compile(r"^(```|~~~)[^\n]*\n.*?(?:^\1[^\n]*(?:\n|\Z)|\Z)", regex.MULTILINE | regex.DOTALL)
_END = rf"(?:[。！？!?；;…]+|\.+(?=[{_CLOSING}]*(?:\s|\Z)))[{_CLOSING}]*"
_SENTENCE = regex.compile(rf".*?(?:{_END}[^\S\n]*\n?|\n|\Z)", regex.DOTALL)
_CLAUSE = regex.compile(r".*?(?:[，、,:：]+\s*|\s+|\Z)", regex.DOTALL)
_GRAPHEME = regex.compile(r"\X")


def chunk_spans(text: str, max_chars: int, overlap: int = 0) -> Iterator[Span]:
    """The chunks of a text in order: each has 1 to `max_chars` characters (code points).

    Without overlap they are the whole text; with it a chunk begins with whole pieces, at most
    `overlap` characters, of the one before. Raises ValueError for one visible character that is longer.
    """
    pieces = list(_pieces(text, max_chars))
    first = 0
    while first < len(pieces):
        start, last = pieces[first][0], first
        while last + 1 < len(pieces) and pieces[last + 1][1] - start <= max_chars:
            last += 1
        end = pieces[last][1]
        yield start, end
        first = _next_first(pieces, first, last, max_chars, overlap)


def _next_first(pieces: list[Span], first: int, last: int, max_chars: int, overlap: int) -> int:
    """The piece that the next chunk begins with: one new piece must fit behind what is repeated."""
    following = last + 1
    if following >= len(pieces):
        return following
    end, new_end = pieces[last][1], pieces[following][1]
    begin = following
    while (
        begin - 1 > first
        and end - pieces[begin - 1][0] <= overlap
        and new_end - pieces[begin - 1][0] <= max_chars
    ):
        begin -= 1
    return begin


def _pieces(text: str, max_chars: int) -> Iterator[Span]:
    """What is not cut: none is longer than `max_chars`."""
    for span in sentence_spans(text):
        if span[1] - span[0] <= max_chars:
            yield span
            continue
        for clause in _spans(_CLAUSE, text, span):
            if clause[1] - clause[0] <= max_chars:
                yield clause
            else:
                yield from _hard(text, clause, max_chars)


def _hard(text: str, span: Span, max_chars: int) -> Iterator[Span]:
    start, end = span[0], span[0]
    for found in _GRAPHEME.finditer(text, *span):
        if found.end() - found.start() > max_chars:
            raise ValueError(
                f"one visible character at {found.start()} has {found.end() - found.start()} code points, "
                f"more than max_chars {max_chars}"
            )
        if found.end() - start > max_chars:
            yield start, end
            start = end
        end = found.end()
    if end > start:
        yield start, end


def sentence_spans(text: str) -> Iterator[Span]:
    """Sentences and lines with what follows them up to the next, code blocks whole; together the text.

    A sentence ends with 。！？!?；;… in runs, or a full stop before white space, and its closing quotes.
    """
    place = 0
    for fence in _FENCE.finditer(text):
        yield from _spans(_SENTENCE, text, (place, fence.start()))
        yield fence.span()
        place = fence.end()
    yield from _spans(_SENTENCE, text, (place, len(text)))


def _spans(pattern: "regex.Pattern[str]", text: str, span: Span) -> Iterator[Span]:
    return (found.span() for found in pattern.finditer(text, *span) if found.end() > found.start())
