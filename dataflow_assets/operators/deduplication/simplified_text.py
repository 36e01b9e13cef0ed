"""Texts made alike before they are compared: what two versions of one text still share."""

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

_CHUNK_CHARS = 1 << 16  # what is worked on at once fits the processor's cache
_REMEMBERED_BYTES = 64  # a longer run, such as a page of Chinese, hardly comes again
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_REMOVED = ("Mn", "Me", "Cf")
_TO_SPACE = ("P", "S", "C", "Z")
_SEPARATOR, _SPACE, _ZERO = b"\n"[0], b" "[0], b"0"[0]
_KEPT_ASCII = string.ascii_letters + string.digits + ".,"
# ASCII in lower case, all but letters, digits, points and commas as a space; other bytes stay.
_ASCII = bytes(
    byte if byte >= 128 else ord(chr(byte).lower()) if chr(byte) in _KEPT_ASCII else _SPACE
    for byte in range(256)
)
_IS_DIGIT = np.array([chr(byte) in string.digits for byte in range(256)])
_IS_POINT = np.array([chr(byte) in ".," for byte in range(256)])


class _Replacements(dict[int, str | None]):
    """What stands for a code point, found at its first use: punctuation is a space, an accent is nothing."""

    def __missing__(self, code_point: int) -> str | None:
        category = unicodedata.category(chr(code_point))
        if category in _REMOVED:
            replacement = None
        else:
            replacement = " " if category.startswith(_TO_SPACE) else chr(code_point)
        self[code_point] = replacement
        return replacement


_REPLACEMENTS = _Replacements()


def simplified(texts: Sequence[str]) -> list[str]:
    """Each text in lower case, each number 0, punctuation and symbols a space, accents off, spaces collapsed.

    The rule is that of datatrove's MinHash; a number is a run of digits with points or commas inside.
    """
    return [simple for chunk in chunks(texts) for simple in _simplified(chunk)]


def chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in order, in groups of at most about 65,000 characters or of one text."""
    begin, size = 0, 0
    for place, text in enumerate(texts):
        if size and size + len(text) > _CHUNK_CHARS:
            yield texts[begin:place]
            begin, size = place, 0
        size += len(text) + 1
    if begin < len(texts):
        yield texts[begin:]


def _simplified(texts: Sequence[str]) -> list[str]:
    data = np.frombuffer(b"\n".join([text.encode().translate(_ASCII) for text in texts]), np.uint8)
    digits = _IS_DIGIT[data]
    points = _IS_POINT[data]
    inner = points[1:-1] & digits[:-2] & digits[2:]
    numbers = digits.copy()
    numbers[1:-1] |= inner
    data = np.where(numbers, _ZERO, np.where(points, _SPACE, data))
    data = data[~_repeats(numbers)]
    if data.size and data.max() >= 128:
        data = np.frombuffer(b"".join(_beyond_ascii(data)), np.uint8)
    data = data[~_repeats(data == _SPACE)]
    return [text.strip(b" ").decode() for text in data.tobytes().split(b"\n")]


def _repeats(mask: np.ndarray) -> np.ndarray:
    """Where the mask is true and was true one place before."""
    repeats = mask.copy()
    repeats[1:] &= mask[:-1]
    repeats[:1] = False
    return repeats


def _beyond_ascii(data: np.ndarray) -> Iterator[bytes]:
    """The pieces of `data`, those beyond ASCII simplified."""
    edges = np.flatnonzero(np.diff(data >= 128, prepend=False, append=False)).tolist()
    whole = data.tobytes()
    done = 0
    for begin, end in zip(edges[0::2], edges[1::2], strict=True):
        yield whole[done:begin]
        run = whole[begin:end]
        yield _simplified_short(run) if len(run) <= _REMEMBERED_BYTES else _simplified_run(run)
        done = end
    yield whole[done:]


@lru_cache(maxsize=1 << 12)
def _simplified_short(run: bytes) -> bytes:
    return _simplified_run(run)


def _simplified_run(run: bytes) -> bytes:
    text = unicodedata.normalize("NFD", run.decode()).lower()
    return _NUMBER.sub("0", text).translate(_REPLACEMENTS).encode()


def normalized(text: str) -> str:
    """The text in NFC, each run of white space one space, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())
