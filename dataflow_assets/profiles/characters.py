"""Counts of the kinds of characters in many texts at once."""

import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np

SPACE, LETTER, DIGIT, CJK, MARK, SPECIAL = range(6)
_KINDS = 6
# The marks of a sentence in English or Chinese; every other sign is special.
_MARKS = ".,;:!?'\"()-’‘“”–—…。，、；：！？（）《》「」『』·"
_CJK_RANGES = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF))
_BMP, _CJK_PLANES = 0x10000, (0x20000, 0x323AF)


@cache
def _kind_of_code() -> np.ndarray:
    """The kind of each character of the Basic Multilingual Plane, and one more for all others."""
    by_category = {"L": LETTER, "M": LETTER, "N": DIGIT, "Z": SPACE}
    kinds = np.full(_BMP + 1, SPECIAL, np.uint8)
    kinds[:_BMP] = [
        SPACE if chr(code).isspace() else by_category.get(unicodedata.category(chr(code))[0], SPECIAL)
        for code in range(_BMP)
    ]
    for first, last in _CJK_RANGES:
        span = kinds[first : last + 1]
        span[span == LETTER] = CJK
    kinds[[ord(mark) for mark in _MARKS]] = MARK
    return kinds


def counts_of_kinds(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """For each text how many characters it has of each kind, and how many runs of letters and digits."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.array([len(text) for text in texts], np.int64)
    kinds = _kind_of_code()[np.minimum(codes, _BMP)]
    kinds[(codes >= _CJK_PLANES[0]) & (codes <= _CJK_PLANES[1])] = CJK
    rows = np.repeat(np.arange(len(texts)), lengths)
    counts = np.bincount(rows * _KINDS + kinds, minlength=len(texts) * _KINDS).reshape(-1, _KINDS)
    in_word = (kinds == LETTER) | (kinds == DIGIT)
    begins = in_word.copy()
    begins[1:] &= ~in_word[:-1] | (rows[1:] != rows[:-1])
    return counts, np.bincount(rows[begins], minlength=len(texts))
