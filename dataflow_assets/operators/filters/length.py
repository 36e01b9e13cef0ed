"""Filters rows by the length of a text, in characters and in words."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextFilter
from dataflow_assets.operators.registry import register


class _FilterLengthParams(ColumnParams):
    min_chars: int | None = Field(None, ge=0, description="The fewest Unicode code points.")
    max_chars: int | None = Field(None, ge=0, description="The most Unicode code points.")
    min_words: int | None = Field(None, ge=0, description="The fewest words between white space.")
    max_words: int | None = Field(None, ge=0, description="The most words between white space.")

    @model_validator(mode="after")
    def _bounds_make_sense(self) -> "_FilterLengthParams":
        chars, words = (self.min_chars, self.max_chars), (self.min_words, self.max_words)
        if chars == words == (None, None):
            raise ValueError("give at least one of min_chars, max_chars, min_words, max_words")
        for unit, (least, most) in (("chars", chars), ("words", words)):
            if least is not None and most is not None and least > most:
                raise ValueError(f"min_{unit} {least} is above max_{unit} {most}: no row could pass")
        return self


@register
class FilterLength(TextFilter):
    """Keeps the rows whose text is neither too short nor too long, in characters or words.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Bounds belong to the range. A character is a Unicode code point, so an emoji family is several.
    A word is what `str.split` finds between white space: Chinese and Japanese are written without,
    so a whole sentence is one word; use the bounds in characters there. Rejected rows have the
    reason `too_short` or `too_long`; too short in one unit and too long in the other is `too_short`.
    Raises nothing on text.

    Example:
        - {name: long_enough, type: filter_length, params: {min_chars: 20, max_chars: 100000}}
    """

    name = "filter_length"
    releases_gil = True
    Params = _FilterLengthParams
    params: _FilterLengthParams

    def reasons(self, texts: pa.ChunkedArray) -> tuple[pa.Array | pa.ChunkedArray, RowErrors]:
        """The reason to drop each text, or null."""
        params = self.params
        short: pa.Array | pa.ChunkedArray = pa.array(np.zeros(len(texts), bool))
        long = short
        for least, most, count in (
            (params.min_chars, params.max_chars, pc.utf8_length),
            (params.min_words, params.max_words, count_words),
        ):
            if least is None and most is None:
                continue
            lengths = count(texts)
            if least is not None:
                short = pc.or_(short, pc.less(lengths, least))
            if most is not None:
                long = pc.or_(long, pc.greater(lengths, most))
        none = pa.scalar(None, pa.large_string())
        too_long = pc.if_else(long, pa.scalar("too_long", pa.large_string()), none)
        return pc.if_else(short, pa.scalar("too_short", pa.large_string()), too_long), RowErrors.none()


def count_words(texts: pa.ChunkedArray) -> pa.Array:
    """How many words each text has between white space. (`utf8_split_whitespace` takes twice as long.)"""
    return pa.array([len(text.split()) for text in texts.to_pylist()], pa.int64())
