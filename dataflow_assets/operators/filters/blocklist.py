"""Filters texts with listed words."""

import hashlib
from collections.abc import Mapping
from functools import cached_property

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.operators.filters.listed_words import ListedWords, folded, read_lists
from dataflow_assets.operators.filters.rules import Measure, Miss, RuleFilter, RuleParams
from dataflow_assets.operators.registry import register
from dataflow_assets.text.document import Document
from dataflow_assets.text.language import LANGUAGES, Language


class _BlocklistParams(RuleParams):
    words: list[str] = Field([], description="Words and phrases, for every text.")
    files: list[str] = Field(
        [], description="UTF-8 files with one word or phrase a line (`#`: a comment), for every text."
    )
    files_by_language: dict[Language, list[str]] = Field(
        {}, description="The same for texts in `en` or `zh` alone; zh from 20% Han characters on."
    )
    max_count: int = Field(0, ge=0, description="How often listed words may stand in a text that stays.")
    max_share: float = Field(
        1.0, ge=0, le=1, description="The most characters in listed words, of those that are no white space."
    )
    _lists: dict[Language, list[str]] = PrivateAttr({})

    @property
    def lists(self) -> Mapping[Language, list[str]]:
        """The words for texts in each language, in the form in which they are compared."""
        return self._lists

    @model_validator(mode="after")
    def _lists_can_be_read(self, info: ValidationInfo) -> "_BlocklistParams":
        everywhere = [*self.words, *read_lists(self.files, info)]
        self._lists = {
            language: sorted(
                {folded(word.strip()) for word in everywhere + read_lists(files, info) if word.strip()}
            )
            for language in LANGUAGES
            for files in [self.files_by_language.get(language, [])]
        }
        if not any(self._lists.values()):
            raise ValueError("there is no word to look for: give words, files or files_by_language")
        return self


@register
class FilterBlocklist(RuleFilter):
    """Keeps the rows whose text has few or no words of a list.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `blocklist_count` and `blocklist_share` (float64). No list is
    shipped: give your own. Case counts not, nor how accents are encoded (NFC). A word counts where it is
    whole: `ass` is not in `class`; in Chinese, Japanese and Thai, which have no spaces between words, it
    counts anywhere. Where words overlap, the first and longest counts. Rejected rows have the reason
    `listed_words` (more than `max_count`) or `listed_share` (more than `max_share`). A blank text has 0 of
    both. Raises nothing on text. Needs the extra `text`. The content of the files decides: a changed file
    is a changed step. Source: open-dataflow's BlocklistFilter, which allows one word.

    Example:
        - {name: decent, type: filter_blocklist, params: {words: [casino, free money, 博彩], max_count: 1}}
    """

    name = "filter_blocklist"
    Params = _BlocklistParams
    params: _BlocklistParams

    def needed_packages(self) -> Mapping[str, str]:
        """What looks for all words at once."""
        return {"ahocorasick": "text"}

    def identity(self) -> Mapping[str, object]:
        """The hash of the words, wherever they come from."""
        lists = [f"{language}:{word}" for language, words in self.params.lists.items() for word in words]
        return {"words": hashlib.sha256("\n".join(lists).encode()).hexdigest()}

    @cached_property
    def _listed(self) -> Mapping[Language, ListedWords]:
        different = {words: ListedWords(words) for words in set(map(tuple, self.params.lists.values()))}
        return {language: different[tuple(words)] for language, words in self.params.lists.items()}

    def measures(self) -> Mapping[str, Measure]:
        """How many listed words there are, and their share of the characters."""
        return {
            "blocklist_count": lambda document, profile: self.values(document)[0],
            "blocklist_share": lambda document, profile: self.values(document)[1],
        }

    def values(self, document: Document) -> list[float | None]:
        """Count and share of the listed words of the text's language."""
        text = folded(document.text)
        spans = self._listed[document.language].spans(text)
        if not spans:
            return [0.0, 0.0]
        return [float(len(spans)), sum(end - start for start, end in spans) / len("".join(text.split()))]

    def miss(self, document: Document) -> Miss | None:
        """The bound that the text is above, or None."""
        bounds = (("listed_words", self.params.max_count), ("listed_share", self.params.max_share))
        for (reason, most), value in zip(bounds, self.values(document), strict=True):
            if value is not None and value > most:
                return Miss(reason, value, float(most))
        return None
