"""Joins the lines of a paragraph that a page layout has broken."""

import re
import unicodedata
from itertools import pairwise
from statistics import quantiles

import regex
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, TextMapper
from dataflow_assets.operators.registry import register

_SENTENCE_END = tuple("。！？!?.…；;：:”」』")
_CLOSING = tuple("，,。！？!?；;：:、…”’」』）)】》〉")
_CHINESE_NUMBER = "〇零一二三四五六七八九十百"
_BEGINS_ANEW = re.compile(
    r"[ \t\u3000]*(?:[-*+•·●○■–—◦▪][ \t]|[•●○■◦▪#|>]|```|~~~"
    r"|[（(]?[0-9０-９a-zA-Z]{1,3}(?:[.)]\s|[．、）])|[0-9]{1,2}(?:\.[0-9]{1,2})+\.?\s"
    rf"|[（(]?[{_CHINESE_NUMBER}]{{1,4}}[、.．)）]|第[{_CHINESE_NUMBER}0-9]{{1,6}}[章节条编款])"
)
_LINE_BREAK = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_WIDE = frozenset("WF")
# What is set without spaces: Han, kana, their punctuation, and the fullwidth forms that go with them.
_CHINESE = regex.compile(
    r"[\p{Han}\p{Katakana}\p{Bopomofo}\u3000-\u30ff\u3200-\u33ff\ufe30-\ufe6f\uff01-\uff9f\uffe0-\uffe6--\p{Hangul}]",
    regex.V1,
)
_KOREAN = regex.compile(r"\p{Hangul}")


class _JoinLinesParams(ColumnParams):
    min_fill: float = Field(
        0.8, gt=0, le=1, description="From this share of the usual longest line on, a line counts as full."
    )


@register
class JoinLines(TextMapper):
    """Joins lines that were broken by a page's width, as text out of a PDF has them.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). A line
    goes on in the next one if it is full and does not end a sentence, or if the next one begins with
    closing punctuation; a line that begins like an item, a heading or a clause is never joined to the
    one before, nor is an empty one. Full is what reaches `min_fill` of the 90th percentile of the
    lines' widths, a wide character (Chinese, Korean, an emoji) counting two. Chinese and Japanese (Han,
    kana, their punctuation, fullwidth letters and digits) are joined without a space, so is a number in
    such a line; other text with one, Korean and emoji too. A hyphen between two lower-case letters at the
    break goes. Line breaks become line feeds.
    Raises nothing on text.

    Example:
        - {name: paragraphs, type: join_lines, params: {column: text}}
    """

    name = "join_lines"
    version = "2"
    Params = _JoinLinesParams
    params: _JoinLinesParams

    def edit(self, text: str) -> str:
        """The text with whole paragraphs."""
        lines = _LINE_BREAK.split(text)
        widths = [_width(line) for line in lines if line.strip()]
        if len(widths) < 2:
            return "\n".join(lines)
        full = self.params.min_fill * quantiles(widths, n=10, method="inclusive")[-1]
        # Parts are joined once at the end: a paragraph that grew line by line would be copied with each.
        parts = [lines[0]]
        is_chinese = False
        for before, line in pairwise(lines):
            if _goes_on(before, _width(before) >= full, line):
                is_chinese = is_chinese or bool(_CHINESE.search(parts[-1]))
                parts[-1:] = _joined(parts[-1], line, is_chinese)
            else:
                parts += ["\n", line]
                is_chinese = False
        return "".join(parts)


def _width(line: str) -> int:
    """Columns that the line takes where a wide character takes two."""
    line = line.strip()
    if line.isascii():
        return len(line)
    return len(line) + sum(unicodedata.east_asian_width(char) in _WIDE for char in line)


def _goes_on(line: str, is_full: bool, next_line: str) -> bool:
    if not line.strip() or not next_line.strip():
        return False
    if next_line.lstrip().startswith(_CLOSING):
        return True
    return is_full and not line.rstrip().endswith(_SENTENCE_END) and not _BEGINS_ANEW.match(next_line)


def _joined(line: str, next_line: str, is_chinese: bool) -> tuple[str, str, str]:
    """Both lines, and what stands between them; `is_chinese` says so of the paragraph up to here."""
    line, next_line = line.rstrip(), next_line.lstrip()
    before, after = line[-1], next_line[0]
    if before == "-" and len(line) > 1 and line[-2].islower() and after.islower():
        return line[:-1], "", next_line
    is_number = is_chinese and before.isdigit() and after.isdigit()
    at_break = before + after
    is_tight = is_number or (_CHINESE.search(at_break) and not _KOREAN.search(at_break))
    return line, "" if is_tight or after in _CLOSING else " ", next_line
