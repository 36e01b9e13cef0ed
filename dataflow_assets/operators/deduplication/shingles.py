"""The shingles of texts: 64-bit hashes of all runs of `n` words or characters."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from dataflow_assets.operators.deduplication.simplified_text import chunks, simplified
from dataflow_assets.text.language import language_of

Unit = Literal["words", "characters"]
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_SEPARATOR, _SPACE = b"\n"[0], b" "[0]


class Shingles(NamedTuple):
    """The hashes of all texts behind each other; those of text `i` are from `ends[i]` to `ends[i + 1]`."""

    hashes: np.ndarray
    ends: np.ndarray


def packages_for(unit: Unit) -> dict[str, str]:
    """What cuts Chinese into words, where words are the units; with the extra that brings it."""
    return {"rjieba": "dedup"} if unit == "words" else {}


def units_texts(texts: Sequence[str], unit: Unit) -> list[str]:
    """The simplified texts; in words, Chinese (Han share from .2 on) has spaces between its words."""
    simple = simplified(texts)
    return simple if unit == "characters" else [_spaced(text) for text in simple]


def _spaced(text: str) -> str:
    if text.isascii() or language_of(text) != "zh":
        return text
    import rjieba

    return " ".join(" ".join(rjieba.cut(text)).split())


def shingles(texts: Sequence[str], unit: Unit, n: int) -> Shingles:
    """The hashes of all runs of `n` units of these units texts; none for a text that has fewer."""
    parts = [_shingles(chunk, unit, n) for chunk in chunks(texts)]
    lengths = np.concatenate([[0], *(lengths for _, lengths in parts)]).astype(np.int64)
    hashes = np.concatenate([np.empty(0, np.uint64), *(hashes for hashes, _ in parts)])
    return Shingles(hashes, np.cumsum(lengths))


def _shingles(texts: Sequence[str], unit: Unit, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The hashes of these texts behind each other, and how many each has."""
    if unit == "characters":
        return _of_characters(texts, n), _counts(map(len, texts), n)
    return _of_words(texts, n), _counts((text.count(" ") + 1 if text else 0 for text in texts), n)


def _counts(units: Iterable[int], n: int) -> np.ndarray:
    return np.maximum(np.fromiter(units, np.int64) - (n - 1), 0)


def _of_characters(texts: Sequence[str], n: int) -> np.ndarray:
    """Polynomials of the code points."""
    codes = np.frombuffer("\n".join(texts).encode("utf-32-le"), "<u4").astype(np.uint64)
    count = max(len(codes) - n + 1, 0)
    hashes = np.zeros(count, np.uint64)
    for place in range(n):
        hashes *= _BASE
        hashes += codes[place : place + count]
    return _mixed(hashes[_without(codes == _SEPARATOR, n)])


def _of_words(texts: Sequence[str], n: int) -> np.ndarray:
    """Polynomials of the bytes of the `n` words with the spaces between them.

    That of a part is the difference of the sums up to its end and up to its start, moved to the front.
    """
    data = np.frombuffer("\n".join(texts).encode(), np.uint8)
    is_word = (data != _SPACE) & (data != _SEPARATOR)
    edges = np.flatnonzero(np.diff(is_word, prepend=False, append=False))
    starts, ends = edges[0::2], edges[1::2]
    is_last = np.append(data, _SEPARATOR)[ends] == _SEPARATOR
    powers, inverses = _powers(1 << max(16, len(data).bit_length()))
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum(data * powers[: len(data)], out=sums[1:])
    count = max(len(starts) - n + 1, 0)
    inside = _without(is_last, n - 1)[:count]
    starts, ends = starts[:count][inside], ends[n - 1 :][inside]
    return _mixed((sums[ends] - sums[starts]) * inverses[starts])


def _without(mask: np.ndarray, n: int) -> np.ndarray:
    """For each run of `n` places whether the mask is false in all of them."""
    seen = np.concatenate([[0], np.cumsum(mask)])
    count = max(len(mask) - n + 1, 0)
    return seen[n : n + count] == seen[:count]


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """The hashes with every bit spread over all others."""
    for _ in range(2):
        hashes ^= hashes >> _HALF
        hashes *= _MIX
    return hashes ^ (hashes >> _HALF)


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` powers of the base and of its inverse, modulo 2 ** 64."""
    both = []
    for base in (int(_BASE), pow(int(_BASE), -1, 1 << 64)):
        powers = np.full(count, base, np.uint64)
        powers[0] = 1
        both.append(np.cumprod(powers, dtype=np.uint64))
    return both[0], both[1]
