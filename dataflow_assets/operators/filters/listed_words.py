"""Lists of words from files, and where their words stand in a text."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo

from dataflow_assets.text.tokens import UNSPACED

_SPACED_LETTER = re.compile(rf"[^\W{UNSPACED}]")


def read_lists(files: Sequence[str], info: ValidationInfo) -> list[str]:
    """The entries of these files, one a line; blank lines and those that begin with `#` are none.

    Relative paths begin at the pipeline's folder. Raises ValueError for a file that cannot be read.
    """
    base = Path(str((info.context or {}).get("base_dir", ".")))
    return [entry for file in files for entry in _entries(file, base / Path(file).expanduser())]


def _entries(file: str, path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the list {file!r} cannot be read as UTF-8 text at {path}: {error}") from error
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def folded(text: str) -> str:
    """The text in lower case and composed (NFC): the form in which words are compared."""
    return unicodedata.normalize("NFC", text.lower())


class ListedWords:
    """Finds words and phrases in a text, all at once (Aho and Corasick 1975), whatever their case.

    A word counts where it is whole: `ass` is not in `class`. In scripts without spaces between words
    (Chinese, Japanese, Thai) it counts anywhere.
    """

    def __init__(self, words: Iterable[str]) -> None:
        import ahocorasick

        self._automaton: Any = ahocorasick.Automaton(ahocorasick.STORE_LENGTH)
        for word in words:
            self._automaton.add_word(folded(word))
        self._automaton.make_automaton()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where words stand in a folded text: from left to right, the longest first, none twice."""
        if not len(self._automaton):
            return []
        whole = [
            (last + 1 - length, last + 1)
            for last, length in self._automaton.iter(text)
            if _is_whole(text, last + 1 - length, last + 1)
        ]
        whole.sort(key=lambda span: (span[0], -span[1]))
        spans: list[tuple[int, int]] = []
        for span in whole:
            if not spans or span[0] >= spans[-1][1]:
                spans.append(span)
        return spans


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no letter of the same word stands before or behind."""
    joined_before = start > 0 and _joins(text[start - 1], text[start])
    joined_behind = end < len(text) and _joins(text[end - 1], text[end])
    return not (joined_before or joined_behind)


@lru_cache(maxsize=65536)
def _joins(left: str, right: str) -> bool:
    """Whether both characters belong to one word of a script with spaces between words."""
    return bool(_SPACED_LETTER.match(left) and _SPACED_LETTER.match(right))
