"""Where a text may be cut: code blocks, lines and sentences, else clauses, else visible characters."""

from collections.abc import Iterator

import regex

Span = tuple[int, int]

_CLOSING = r"\"'”’」』）)\]】》"
_FENCE = regex.compile(
    r"^ {0,3}(?:(?P<ticks>`{3,})[^`\n]*|(?P<tildes>~{3,})[^\n]*)\n"
    r".*?(?:^ {0,3}(?(ticks)(?P=ticks)`*|(?P=tildes)~*)[^\S\n]*(?:\n|\Z)|\Z)",
    regex.MULTILINE | regex.DOTALL,
)
# Possessive and looking back: a run of stops is looked at once, however long it is.
_END = rf"(?:[。！？!?；;…]++|(?<!\.)\.++(?=[{_CLOSING}]*+(?:\s|\Z)))[{_CLOSING}]*+"
_SENTENCE_END = regex.compile(rf"{_END}[^\S\n]*+\n?|\n")
_CLAUSE_END = regex.compile(r"[，、,:：]++\s*+|\s++")
_LINE_END = regex.compile(r"\n")
_GRAPHEME = regex.compile(r"\X")
_CONTINUES = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]")


def sentence_spans(text: str) -> Iterator[Span]:
    """Sentences and lines with what follows them up to the next, code blocks whole; together the text.

    A sentence ends with 。！？!?；;… in runs, or a full stop before white space, and its closing quotes.
    """
    place = 0
    for fence in fence_spans(text):
        yield from _spans(_SENTENCE_END, text, (place, fence[0]))
        yield fence
        place = fence[1]
    yield from _spans(_SENTENCE_END, text, (place, len(text)))


def fence_spans(text: str) -> Iterator[Span]:
    """The fenced code blocks of Markdown (CommonMark, section 4.5), fences included."""
    return (found.span() for found in _FENCE.finditer(text))


def clause_spans(text: str, span: Span) -> Iterator[Span]:
    """The span cut after commas, colons and white space."""
    return _spans(_CLAUSE_END, text, span)


def line_spans(text: str, span: Span) -> Iterator[Span]:
    """The lines of the span, each with its end."""
    return _spans(_LINE_END, text, span)


def grapheme_spans(text: str, span: Span) -> Iterator[Span]:
    """The visible characters of the span (Unicode Standard Annex 29)."""
    part = text[slice(*span)]
    if part.isascii() and "\r" not in part:
        return zip(range(span[0], span[1]), range(span[0] + 1, span[1] + 1), strict=True)
    return (found.span() for found in _GRAPHEME.finditer(text, *span))


def _spans(end_mark: "regex.Pattern[str]", text: str, span: Span) -> Iterator[Span]:
    """The span cut behind each end mark, unless that is within a visible character."""
    start = span[0]
    for found in end_mark.finditer(text, *span):
        end = found.end()
        if not _is_within(text, end):
            yield start, end
            start = end
    if start < span[1]:
        yield start, span[1]


def _is_within(text: str, place: int) -> bool:
    return (
        place < len(text)
        and text[place] > "\x7f"
        and text[place - 1] not in "\n\r"
        and _CONTINUES.match(text, place) is not None
    )
