"""Shortens runs of punctuation, or takes punctuation out of texts."""

import re
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import Field, field_validator

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, replaced

# Marks that Markdown, tables and programs repeat with a meaning (- = * # / | : & ` ~) are not among them.
_MARKS = "!?,;.！？，；。、：…—～·"
# What is right in print: an English ellipsis has three dots, a Chinese one and a Chinese dash two signs.
_LONGEST = {".": 3, "…": 2, "—": 2}


class _CollapsePunctuationParams(ColumnParams):
    marks: str = Field(_MARKS, min_length=1, description="The marks whose runs are shortened.")
    longest: dict[str, int] = Field(
        _LONGEST, description="The longest run of a mark that stays; one where a mark is not named."
    )

    @field_validator("longest")
    @classmethod
    def _runs_are_right(cls, longest: dict[str, int]) -> dict[str, int]:
        for mark, length in longest.items():
            if len(mark) != 1 or not 1 <= length <= 100:
                raise ValueError(f"{mark!r}: {length}: expected one mark and a number from 1 to 100")
        return longest


@register
class CollapsePunctuation(TextMapper):
    """Shortens runs of the same punctuation mark: `!!!!` to `!`, `。。。` to `。`, `......` to `...`.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). A run
    longer than `longest` says for its mark becomes as long as that: three dots, two `…`, two `—`, one
    of every other mark. Mixed runs (`?!?!`) stay. Done twice, the second time changes nothing. Raises
    nothing on text.

    Example:
        - {name: calm, type: collapse_punctuation, params: {column: text}}
    """

    name = "collapse_punctuation"
    releases_gil = True
    Params = _CollapsePunctuationParams
    params: _CollapsePunctuationParams

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts with shorter runs."""
        lengths = {mark: self.params.longest.get(mark, 1) for mark in self.params.marks}
        patterns = {mark: f"{re.escape(mark)}{{{length + 1},}}" for mark, length in lengths.items()}
        found = pc.match_substring_regex(texts, "|".join(patterns.values()))

        def shortened(some: pa.ChunkedArray) -> pa.ChunkedArray:
            for mark, pattern in patterns.items():
                some = replaced(some, pattern, mark * lengths[mark])
            return some

        return edited_where(texts, found, shortened), RowErrors.none()


class _RemovePunctuationParams(ColumnParams):
    keep: str = Field("", description="Marks that stay, e.g. `'-`.")
    replacement: str = Field("", description="What stands in the place of each run of marks.")


@register
class RemovePunctuation(TextMapper):
    """Takes every punctuation mark and symbol out of a text column, whatever its script.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). Goes:
    all of Unicode's categories P and S (so `，`, `$`, `+` and emoji too), but for the marks in `keep`.
    For word statistics and topic models; a text for training wants its punctuation. Raises nothing on
    text.

    Example:
        - {name: words_only, type: remove_punctuation, params: {keep: "'-", replacement: " "}}
    """

    name = "remove_punctuation"
    Params = _RemovePunctuationParams
    params: _RemovePunctuationParams

    @cached_property
    def _marks(self) -> "regex.Pattern[str]":
        kept = "".join(f"\\U{ord(mark):08x}" for mark in self.params.keep)
        difference = rf"--[{kept}]" if kept else ""
        return regex.compile(rf"(?V1)[[\p{{P}}\p{{S}}]{difference}]+")

    def edit(self, text: str) -> str:
        """The text without marks."""
        return self._marks.sub(lambda _: self.params.replacement, text)
