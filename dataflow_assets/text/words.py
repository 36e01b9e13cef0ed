"""The words of a text: spaCy's in English, jieba's in Chinese, as datatrove has them."""

import importlib.util
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.language import Language
from dataflow_assets.text.characters import PUNCTUATION

_PACKAGES = {"en": ("spacy",), "zh": ("jieba", "rjieba")}


class Words:
    """The words and punctuation marks of a text in order, without white space."""

    def __init__(self, strings: list[str]) -> None:
        self.strings = strings

    def __len__(self) -> int:
        return len(self.strings)

    @cached_property
    def _written(self) -> list[str]:
        return [word for word in self.strings if not PUNCTUATION.issuperset(word)]

    @property
    def written(self) -> int:
        """How many are not punctuation alone."""
        return len(self._written)

    @property
    def mean_written_length(self) -> float | None:
        """The mean characters of those that are not punctuation alone, None where there is none."""
        return sum(map(len, self._written)) / len(self._written) if self._written else None

    @property
    def with_letter(self) -> int:
        """How many have a letter."""
        return sum(any(map(str.isalpha, word)) for word in self.strings)

    def how_many_of(self, wanted: Iterable[str]) -> int:
        """How many of these words occur."""
        return len(set(wanted).intersection(self.strings))


def check_installed(languages: Iterable[Language]) -> None:
    """Raises ConfigError where a package that finds the words of these languages is missing."""
    for language in languages:
        for package in _PACKAGES[language]:
            if importlib.util.find_spec(package) is None:
                raise ConfigError(
                    f"the words of {language!r} texts need the package {package}, which is not installed; "
                    "run `pip install 'dataflow_assets[text]'`"
                )


def words_of(text: str, language: Language) -> Words:
    """The words of a text."""
    if language == "zh":
        import jieba

        found = jieba.cut(text)
    else:
        found = (token.text for token in _english()(text))
    return Words([word.strip() for word in found if not word.isspace()])


@cache
def _english() -> Any:
    import spacy

    return spacy.blank("en").tokenizer
