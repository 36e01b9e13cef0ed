"""Takes words and numbers out of texts, or writes short forms in full."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.refiners.data_files import data_lines, data_table
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, replaced, texts_by_row
from dataflow_assets.optional_packages import version_of
from dataflow_assets.text.language import language_of

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_WORD_AND_SPACES = re.compile(rf"({_WORD.pattern})[ \t]*")


class _RemoveStopWordsParams(ColumnParams):
    language: Literal["auto", "en", "zh"] = Field(
        "auto", description="Whose list and words; `auto`: zh for texts with 20% Han characters or more."
    )
    add: list[str] = Field([], description="More words to take out.")
    keep: list[str] = Field([], description="Words of the list that stay, e.g. `[not, no]`.")


@register
class RemoveStopWords(TextMapper):
    """Takes stop words out of a text column, English or Chinese ones.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). An
    English word is a run of letters with apostrophes within, in any case; it goes with the spaces
    behind it. Chinese words are those that the segmenter rjieba finds; English words in a Chinese text
    stay. For word statistics and retrieval; a text for training wants its stop words. Raises ConfigError
    where rjieba is missing and `language` is not `en`. Lists, in the package: Snowball (English, BSD),
    Stopwords ISO (Chinese, MIT).

    Example:
        - {name: content_words, type: remove_stop_words, params: {language: en, keep: [not]}}
    """

    name = "remove_stop_words"
    Params = _RemoveStopWordsParams
    params: _RemoveStopWordsParams

    def needed_packages(self) -> Mapping[str, str]:
        """What finds Chinese words."""
        return {} if self.params.language == "en" else {"rjieba": "text"}

    def identity(self) -> Mapping[str, object]:
        """The version of the segmenter, and the lists."""
        if self.params.language == "en":
            return {"en": data_lines("stop_words.en.txt")}
        lists = {name: data_lines(f"stop_words.{name}.txt") for name in ("en", "zh")}
        return {"rjieba": version_of("rjieba"), **lists}

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        added, kept = map(_plain, self.params.add), set(map(_plain, self.params.keep))
        more = frozenset(added)
        return {name: (more | set(data_lines(f"stop_words.{name}.txt"))) - kept for name in ("en", "zh")}

    def edit(self, text: str) -> str:
        """The text without stop words."""
        language = self.params.language
        if (language_of(text) if language == "auto" else language) == "zh":
            import rjieba

            words = self._words["zh"]
            return "".join(word for word in rjieba.cut(text) if word not in words)
        words = self._words["en"]
        return _WORD_AND_SPACES.sub(lambda match: "" if _plain(match[1]) in words else match[0], text)


def _plain(word: str) -> str:
    return word.lower().replace("’", "'")


class _RemoveNumbersParams(ColumnParams):
    what: Literal["numbers", "digits"] = Field(
        "numbers",
        description="`numbers`: whole numbers with sign, separators and percent sign that are no part of an "
        "ASCII word. `digits`: every decimal digit, also in words.",
    )
    replacement: str = Field("", description="What stands in the place of a number or run of digits.")


_NUMBER = re.compile(
    r"(?<![\dA-Za-z_])(?<!\d[.,])(?<![A-Za-z]-)(?:(?<![^\s(（])[+-])?\d+(?:[.,]\d+)*%?"
    r"(?![\dA-Za-z_])(?![.,]\d)"
)


@register
class RemoveNumbers(TextMapper):
    """Takes numbers out of a text column, or every digit.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). A number
    has digits of any script, with `.` and `,` between them (`1,234.5`), a sign where nothing but space
    or a bracket is before it, and `%`; `B2B`, `GPT-4` and `3rd` hold none. Numbers in words, Chinese
    ones too, stay. Raises nothing on text.

    Example:
        - {name: without_numbers, type: remove_numbers, params: {replacement: "0"}}
    """

    name = "remove_numbers"
    version = "2"
    Params = _RemoveNumbersParams
    params: _RemoveNumbersParams

    def edit(self, text: str) -> str:
        """The text without numbers."""
        return _NUMBER.sub(lambda _: self.params.replacement, text)

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without numbers; texts without a digit are not touched."""
        found = pc.match_substring_regex(texts, r"\p{Nd}")
        if self.params.what == "numbers":
            return edited_where(texts, found, lambda some: texts_by_row(some, self.edit)), RowErrors.none()
        without = edited_where(texts, found, lambda some: replaced(some, r"\p{Nd}+", self.params.replacement))
        return without, RowErrors.none()


_CONTRACTION = re.compile(r"(?<![0-9A-Za-z_])[A-Za-z]+['’][A-Za-z]+(?:['’][A-Za-z]+)?(?![0-9A-Za-z_])")
_ENDINGS = {"n't": " not", "'re": " are", "'ll": " will", "'ve": " have"}


@register
class ExpandContractions(TextMapper):
    """Writes English contractions in full: `don't` to `do not`, `I'm` to `I am`, `it's` to `it is`.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). Both
    apostrophes count. Words of the table in the package and those that end in n't, 're, 'll, 've are
    expanded, in the case of the word (`Can't`, `CAN'T`). What may mean two things stays: `he'd`, and the
    's of a noun. Raises nothing on text.

    Example:
        - {name: in_full, type: expand_contractions, params: {column: text}}
    """

    name = "expand_contractions"

    def identity(self) -> Mapping[str, object]:
        """The table."""
        return {"contractions": data_lines("contractions.en.txt")}

    def edit(self, text: str) -> str:
        """The text in full."""
        return _CONTRACTION.sub(lambda match: _in_full(match[0]), text)

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts in full."""
        found = pc.match_substring_regex(texts, "[A-Za-z]['’][A-Za-z]")
        return edited_where(texts, found, lambda some: texts_by_row(some, self.edit)), RowErrors.none()


def _in_full(word: str) -> str:
    plain = _plain(word)
    long = data_table("contractions.en.txt", "=").get(plain)
    if long is None:
        ending = next((ending for ending in _ENDINGS if plain.endswith(ending)), None)
        if ending is None:
            return word
        long = _in_full(plain[: -len(ending)]) + _ENDINGS[ending]
    if word.isupper() and len(word) > 3:
        return long.upper()
    return long[0].upper() + long[1:] if word[0].isupper() else long
