"""Words as numbers, so that a text is an array and what a rule asks of a word is asked once.

A vocabulary keeps which words a run of characters has; most runs of a text were seen before. It
holds at most `_MAX_RUNS` runs and `_MAX_CHARS` characters (about 80 MB in all); then it is given up
for a new one, and texts that have numbers of the old one keep it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from dataflow_assets.text.characters import PUNCTUATION

_MAX_RUNS = 200_000
_MAX_CHARS = 8_000_000
# A long run hardly comes again: it would fill the memory for nothing.
_MAX_KEPT_RUN_CHARS = 64
# Codes of words are remainders by this prime: the code of a concatenation follows from those of its parts.
CODE_PRIME = 2_147_483_629


class _Numbers(dict[str, int]):
    """The number of each word, and the words by number, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self.words)
        self.words.append(word)
        return number


class _Runs(dict[str, tuple[int, ...]]):
    """The numbers of the words of each run."""

    def __init__(self, cut: Callable[[str], Sequence[str]], numbers: _Numbers) -> None:
        self._cut, self._numbers = cut, numbers

    def __missing__(self, run: str) -> tuple[int, ...]:
        found = tuple(map(self._numbers.__getitem__, self._cut(run)))
        if len(run) <= _MAX_KEPT_RUN_CHARS:
            self[run] = found
        return found


class Vocabulary:
    """The words that one tokenizer has found, and their properties by number."""

    def __init__(self, cut: Callable[[str], Sequence[str]]) -> None:
        self._numbers = _Numbers()
        self._runs = _Runs(cut, self._numbers)
        self._chars = 0
        self._described = 0
        self.strings = self._numbers.words
        self.lengths = np.empty(0, np.int32)
        self.is_written = np.empty(0, bool)
        self.has_letter = np.empty(0, bool)
        self.codes = np.empty(0, np.int64)
        self.shifts = np.empty(0, np.int64)

    @property
    def is_full(self) -> bool:
        """Whether it is time for a new one."""
        return len(self._runs) > _MAX_RUNS or self._chars > _MAX_CHARS

    def numbers_of(self, runs: Iterable[str]) -> np.ndarray:
        """The numbers of the words of these runs, in order."""
        found = np.fromiter(chain.from_iterable(map(self._runs.__getitem__, runs)), np.int32)
        if len(self.strings) > self._described:
            self._describe(self.strings[self._described :])
        return found

    def number_of(self, word: str) -> int | None:
        """The number of a word, None where no text had it yet."""
        return self._numbers.get(word)

    def _describe(self, words: list[str]) -> None:
        """Takes the properties of new words in; all arrays grow by doubling."""
        start, stop = self._described, len(self.strings)
        if stop > len(self.lengths):
            for name in ("lengths", "is_written", "has_letter", "codes", "shifts"):
                grown = np.zeros(max(1024, 2 * stop), getattr(self, name).dtype)
                grown[:start] = getattr(self, name)[:start]
                setattr(self, name, grown)
        encoded = [word.encode() for word in words]
        self.lengths[start:stop] = [len(word) for word in words]
        self.is_written[start:stop] = [not PUNCTUATION.issuperset(word) for word in words]
        self.has_letter[start:stop] = [word.isalpha() or any(map(str.isalpha, word)) for word in words]
        self.codes[start:stop] = [int.from_bytes(word, "big") % CODE_PRIME for word in encoded]
        self.shifts[start:stop] = [pow(256, len(word), CODE_PRIME) for word in encoded]
        self._described = stop
        self._chars += sum(map(len, words))
