"""Counts of the kinds of characters in many texts at once."""

import unicodedata
from collections.abc import Sequence

import numpy as np

SPACE, LETTER, DIGIT, CJK, MARK, SPECIAL = range(6)
_KINDS = 6
_BY_CATEGORY = {"L": LETTER, "M": LETTER, "N": DIGIT, "Z": SPACE}
# The marks of a sentence in English or Chinese; every other sign is special.
_MARKS = ".,;:!?'\"()-’‘“”–—…。，、；：！？（）《》「」『』·"
_CJK_RANGES = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF))
_BMP, _CJK_PLANES = 0x10000, (0x20000, 0x323AF)


_UNKNOWN = 255
# The kind of each character of the Basic Multilingual Plane that was met, and one more for all others.
_kinds = np.full(_BMP + 1, _UNKNOWN, np.uint8)
_kinds[_BMP] = SPECIAL


def _kinds_of(codes: np.ndarray) -> np.ndarray:
    """The kind of each character, by its code point."""
    within = np.minimum(codes, _BMP)
    kinds = _kinds[within]
    for code in np.unique(within[kinds == _UNKNOWN]).tolist():
        _kinds[code] = _kind_of(code)
    kinds = _kinds[within]
    kinds[(codes >= _CJK_PLANES[0]) & (codes <= _CJK_PLANES[1])] = CJK
    return kinds


def _kind_of(code: int) -> int:
    char = chr(code)
    if char in _MARKS:
        return MARK
    if char.isspace():
        return SPACE
    kind = _BY_CATEGORY.get(unicodedata.category(char)[0], SPECIAL)
    is_cjk = kind == LETTER and any(first <= code <= last for first, last in _CJK_RANGES)
    return CJK if is_cjk else kind


def counts_of_kinds(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """For each text how many characters it has of each kind, and how many runs of letters and digits."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.array([len(text) for text in texts], np.int64)
    kinds = _kinds_of(codes)
    rows = np.repeat(np.arange(len(texts)), lengths)
    counts = np.bincount(rows * _KINDS + kinds, minlength=len(texts) * _KINDS).reshape(-1, _KINDS)
    in_word = (kinds == LETTER) | (kinds == DIGIT)
    begins = in_word.copy()
    begins[1:] &= ~in_word[:-1] | (rows[1:] != rows[:-1])
    return counts, np.bincount(rows[begins], minlength=len(texts))
