"""Turns traditional Chinese characters into simplified ones."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, texts_by_row
from dataflow_assets.optional_packages import version_of


class _SimplifyChineseParams(ColumnParams):
    source: Literal["traditional", "taiwan", "taiwan_words", "hong_kong"] = Field(
        "traditional",
        description="Which standard the texts follow; `taiwan_words` also turns words of Taiwan into those "
        "of the mainland (滑鼠 to 鼠标).",
    )


_CONFIGS = {"traditional": "t2s", "taiwan": "tw2s", "taiwan_words": "tw2sp", "hong_kong": "hk2s"}


@register
class SimplifyChinese(TextMapper):
    """Turns traditional Chinese characters of a text column into simplified ones.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). OpenCC
    looks at words, so that 乾 becomes 干 in 乾燥 and stays in 乾坤. Texts without Han characters are not
    touched. Japanese kanji are taken for Chinese: choose the rows first. Raises ConfigError where the
    package opencc (extra `chinese`) is missing.

    Example:
        - {name: simplified, type: simplify_chinese, params: {source: taiwan}}
    """

    name = "simplify_chinese"
    Params = _SimplifyChineseParams
    params: _SimplifyChineseParams

    def needed_packages(self) -> Mapping[str, str]:
        """OpenCC."""
        return {"opencc": "chinese"}

    def identity(self) -> Mapping[str, object]:
        """The version of OpenCC, whose dictionaries change."""
        return {"opencc": version_of("opencc")}

    @cached_property
    def _converter(self) -> Any:
        import opencc

        return opencc.OpenCC(_CONFIGS[self.params.source])

    def edit(self, text: str) -> str:
        """The text in simplified characters."""
        return self._converter.convert(text)

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts in simplified characters."""
        han = pc.match_substring_regex(texts, r"\p{Han}")
        return edited_where(texts, han, lambda some: texts_by_row(some, self.edit)), RowErrors.none()
