"""How much of a text is made of runs of words that come again; bounds first, the exact count where needed."""

from collections import Counter

import numpy as np

from dataflow_assets.text.vocabulary import CODE_PRIME
from dataflow_assets.text.words import Words


class Ngrams:
    """The n-grams of the words of a text, as Gopher's repetition rules count them.

    The bounds compare codes: two equal n-grams have the same code, and two different ones hardly
    ever, so that a bound is never below what it bounds.
    """

    def __init__(self, words: Words) -> None:
        self._words = words
        self._shifts = words.shifts
        self._codes = [words.codes]
        self._ends = np.concatenate(([0], np.cumsum(words.lengths)))

    def _codes_of(self, n: int) -> np.ndarray:
        """The codes of the n-grams without spaces between the words, by their first word."""
        single = self._codes[0]
        while len(self._codes) < n:
            so_far, size = self._codes[-1], len(self._codes)
            self._codes.append((so_far[:-1] * self._shifts[size:] + single[size:]) % CODE_PRIME)
        return self._codes[n - 1]

    def _chars_of(self, n: int) -> np.ndarray:
        """The characters of the n-grams without spaces, by their first word."""
        return self._ends[n:] - self._ends[:-n]

    def top_chars(self, n: int) -> int | None:
        """The characters of the most frequent n-gram times its count, one space between its words.

        Of equally frequent ones the first counts. None where there is no n-gram.
        """
        strings = self._words.strings
        counts = Counter(zip(*(strings[start:] for start in range(n)), strict=False))
        if not counts:
            return None
        top, count = max(counts.items(), key=lambda item: item[1])
        return (sum(map(len, top)) + n - 1) * count

    def top_is_within(self, n: int, share: float, chars: int) -> bool:
        """True where `top_chars` is surely not above this share of so many characters."""
        count = len(self._words) - n + 1
        if count < 1:
            return True
        longest = int(self._chars_of(n).max()) + n - 1
        most = int(min(share * chars / longest, count))
        if most * longest / chars > share:
            most -= 1
        if most >= count:
            return True
        codes = self._codes_of(n)
        ordered = np.sort(codes)
        if most and not (ordered[most:] == ordered[:-most]).any():
            return True
        _, kind, counts = np.unique(codes, return_inverse=True, return_counts=True)
        return int((counts[kind] * (self._chars_of(n) + n - 1)).max()) / chars <= share

    def duplicate_chars(self, n: int) -> int:
        """The characters of n-grams that came before, read from the left, none of them overlapping.

        Two n-grams are equal when their characters are, wherever words end in them.
        """
        strings = self._words.strings
        seen: set[str] = set()
        chars = place = 0
        while place < len(strings) - n + 1:
            ngram = "".join(strings[place : place + n])
            if ngram in seen:
                chars += len(ngram)
                place += n
            else:
                seen.add(ngram)
                place += 1
        return chars

    def duplicates_are_within(self, n: int, share: float, chars: int) -> bool:
        """True where `duplicate_chars` is surely not above this share of so many characters."""
        if len(self._words) < n:
            return True
        codes = self._codes_of(n)
        ordered = np.sort(codes)
        again = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        if not again or again * int(self._chars_of(n).max()) / chars <= share:
            return True
        return self._covered_chars(codes, n) / chars <= share

    def _covered_chars(self, codes: np.ndarray, n: int) -> int:
        """The characters of the words that are in any n-gram whose code came before."""
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        again = order[1:][ordered[1:] == ordered[:-1]]
        steps = np.zeros(len(self._words) + 1, np.int32)
        steps[again] += 1
        steps[again + n] -= 1
        covered = np.cumsum(steps[:-1]) > 0
        return int(self._words.lengths[covered].sum())
