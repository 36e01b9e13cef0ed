"""Puts the lines of a paragraph together that a page or a mail has wrapped."""

import unicodedata

import regex
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, TextMapper
from dataflow_assets.operators.registry import register

_ENDS = regex.compile(r"[。！？.!?:：;；…][\"'”’」』）)\]】》]*$")
_BEGINS = regex.compile(
    r"[-*+•·–—◦▪]\s|[#|>]|```|~~~|[0-9一二三四五六七八九十]{1,3}、"
    r"|\(?[0-9]{1,3}[.)]\s|[0-9]{1,2}(?:\.[0-9]{1,2})+\.?\s"
)
_NO_SPACE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]")


class _JoinLinesParams(ColumnParams):
    min_fill: float = Field(
        0.7,
        gt=0,
        le=1,
        description="A line goes on in the next one if it is this wide, as a share of the widest line.",
    )


@register
class JoinLines(TextMapper):
    r"""Joins lines that a page has wrapped, so that sentences are whole again.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string).

    A line goes on in the next one where it is full (`min_fill` of the widest line of the text; wide
    characters count two), does not end a sentence, and the next is neither blank nor the start of an
    item, a heading, a table row or a code block. Between Chinese or Japanese characters nothing is put,
    elsewhere a space. A hyphen between small letters goes (`exam-` and `ple`). Other lines and all
    blank ones stay. Raises nothing on text. The rule is our own: there is no standard for it.

    Example:
        - {name: joined, type: join_lines, params: {column: text}}
    """

    name = "join_lines"
    Params = _JoinLinesParams
    params: _JoinLinesParams

    def edit(self, text: str) -> str:
        """The text with its wrapped lines joined."""
        lines = [line.rstrip() for line in text.split("\n")]
        if len(lines) == 1:
            return text
        full = self.params.min_fill * max(map(_width, lines))
        parts: list[str] = []
        for number, line in enumerate(lines):
            parts.append(line)
            if number + 1 < len(lines):
                _end(parts, line, lines[number + 1], full)
        return "".join(parts)


def _end(parts: list[str], line: str, following: str, full: float) -> None:
    """Puts behind a line what parts it from the next."""
    start = following.lstrip()
    goes_on = line and start and not _ENDS.search(line) and not _BEGINS.match(start) and _width(line) >= full
    if not goes_on:
        parts.append("\n")
    elif len(line) > 1 and line[-1] == "-" and line[-2].islower() and start[0].islower():
        parts[-1] = line[:-1]
    elif not (_NO_SPACE.match(line[-1]) or _NO_SPACE.match(start[0])):
        parts.append(" ")


def _width(line: str) -> int:
    if line.isascii():
        return len(line)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)
