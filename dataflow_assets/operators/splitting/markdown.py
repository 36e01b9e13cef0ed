"""The sections of a Markdown text: each with the headings that it stands under."""

from collections.abc import Iterator
from typing import NamedTuple

import regex

from dataflow_assets.text.sentences import fence_spans

# CommonMark, sections 4.2 and 4.3; the text of an underlined heading is one line here.
_HEADING = regex.compile(
    r"""
    ^\ {0,3}(?:
        (?P<marks>\#{1,6}) (?:[ \t]++(?P<text>[^\n]*?))?? (?:[ \t]++\#++)? [ \t]*+\r?$
    |   (?<=\A|\n[ \t]*\r?\n\ {0,3}) (?P<line>(?![>|*+\-\#`~])\S[^\n]*?) [ \t]*+\r?\n
        \ {0,3}(?P<under>=+|-{2,}) [ \t]*+\r?$
    )
    """,
    regex.MULTILINE | regex.VERBOSE,
)


class Section(NamedTuple):
    """A part of the text from a heading to the next, and the headings above it, its own last."""

    start: int
    end: int
    headings: tuple[str, ...]


class _Heading(NamedTuple):
    start: int
    end: int
    level: int
    text: str


def sections(text: str) -> list[Section]:
    """The sections, together the text; a heading with nothing below it goes with the section after it."""
    found = list(_headings(text))
    parts: list[Section] = []
    path: list[_Heading] = []
    start = 0
    for number, heading in enumerate(found):
        if number == 0 and text[: heading.start].strip():
            parts.append(Section(0, heading.start, ()))
            start = heading.start
        path = [*(above for above in path if above.level < heading.level), heading]
        end = found[number + 1].start if number + 1 < len(found) else len(text)
        if end == len(text) or text[heading.end : end].strip():
            parts.append(Section(start, end, tuple(each.text for each in path)))
            start = end
    return parts or [Section(0, len(text), ())]


def _headings(text: str) -> Iterator[_Heading]:
    """The headings that are not inside a code block."""
    fences = fence_spans(text)
    fence = next(fences, None)
    for found in _HEADING.finditer(text):
        while fence is not None and fence[1] <= found.start():
            fence = next(fences, None)
        if fence is not None and fence[0] <= found.start():
            continue
        words = found["text"] if found["marks"] else found["line"]
        level = len(found["marks"]) if found["marks"] else (1 if found["under"].startswith("=") else 2)
        yield _Heading(found.start(), found.end(), level, (words or "").strip())
