"""The words of a text: spaCy's in English, jieba's in Chinese, as datatrove has them."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from threading import Lock

import numpy as np
import xxhash

from dataflow_assets.text.chinese import chinese_runs, cut_chinese
from dataflow_assets.text.english import english_tokenizer
from dataflow_assets.text.language import Language
from dataflow_assets.text.vocabulary import Vocabulary

_PACKAGES: dict[Language, tuple[str, ...]] = {"en": (), "zh": ("jieba", "rjieba")}
# Words of texts that are kept for the next filter of a chain: about 10 bytes each, 40 MB. A text, however
# short, takes as much room as a hundred words.
_MAX_KEPT_WORDS = 4_000_000
_WORDS_PER_TEXT = 100


class Words:
    """The words and punctuation marks of a text in order, without white space."""

    def __init__(self, numbers: np.ndarray, vocabulary: Vocabulary) -> None:
        self.numbers = numbers
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def strings(self) -> list[str]:
        """The words themselves."""
        return list(map(self._vocabulary.strings.__getitem__, self.numbers.tolist()))

    @cached_property
    def lengths(self) -> np.ndarray:
        """The characters of each."""
        return self._vocabulary.lengths[self.numbers]

    @property
    def codes(self) -> np.ndarray:
        """A remainder for each, equal for equal words (see `Vocabulary`)."""
        return self._vocabulary.codes[self.numbers]

    @property
    def shifts(self) -> np.ndarray:
        """What the code of a text before each word is multiplied with to append the word."""
        return self._vocabulary.shifts[self.numbers]

    @cached_property
    def _is_written(self) -> np.ndarray:
        return self._vocabulary.is_written[self.numbers]

    @cached_property
    def written(self) -> int:
        """How many are not punctuation alone."""
        return int(np.count_nonzero(self._is_written))

    @property
    def mean_written_length(self) -> float | None:
        """The mean characters of those that are not punctuation alone, None where there is none."""
        return int(self.lengths.dot(self._is_written)) / self.written if self.written else None

    @property
    def with_letter(self) -> int:
        """How many have a letter."""
        return int(np.count_nonzero(self._vocabulary.has_letter[self.numbers]))

    def how_many_of(self, wanted: Iterable[str]) -> int:
        """How many of these words occur."""
        known = {self._vocabulary.number_of(word) for word in wanted}
        return len(known.intersection(self.numbers.tolist()))


def packages_for(languages: Iterable[Language]) -> dict[str, str]:
    """The packages that find the words of these languages, each with the extra that brings it."""
    return {package: "text" for language in languages for package in _PACKAGES[language]}


class _Kept:
    """The words of the last texts: the next filter of a chain gets the same texts."""

    def __init__(self) -> None:
        self._words: OrderedDict[tuple[Language, bytes], Words] = OrderedDict()
        self._total = 0

    def get(self, key: tuple[Language, bytes]) -> Words | None:
        return self._words.get(key)

    def keep(self, key: tuple[Language, bytes], words: Words) -> None:
        self._words[key] = words
        self._total += _room(words)
        while self._total > _MAX_KEPT_WORDS:
            self._total -= _room(self._words.popitem(last=False)[1])

    def clear(self) -> None:
        self._words.clear()
        self._total = 0


def _room(words: Words) -> int:
    return _WORDS_PER_TEXT + len(words)


class _Tokenizer:
    """How the words of one language are found: runs that are cut each on its own."""

    def __init__(self, runs: Callable[[str], list[str]], cut: Callable[[str], Sequence[str]]) -> None:
        self.runs, self._cut = runs, cut
        self._vocabulary = Vocabulary(cut)

    def words(self, text: str) -> Words:
        if self._vocabulary.is_full:
            self._vocabulary = Vocabulary(self._cut)
            _kept.clear()
        return Words(self._vocabulary.numbers_of(self.runs(text)), self._vocabulary)


_kept = _Kept()
_one_at_a_time = Lock()
_tokenizers: dict[Language, _Tokenizer] = {
    "en": _Tokenizer(str.split, lambda run: english_tokenizer().cut(run)),
    "zh": _Tokenizer(chinese_runs, cut_chinese),
}


def words_of(text: str, language: Language) -> Words:
    """The words of a text."""
    key = language, xxhash.xxh3_128_digest(text.encode())
    with _one_at_a_time:
        words = _kept.get(key)
        if words is None:
            words = _tokenizers[language].words(text)
            _kept.keep(key, words)
        return words


def fewest_words(text: str, language: Language) -> int:
    """A number that the words of the text are not fewer than, at less cost than finding them."""
    return len(_tokenizers[language].runs(text))
