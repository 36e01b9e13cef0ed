"""Chinese words as jieba 0.42.1 cuts them, most of them by rjieba.

The two are equal on blocks of Han characters: dictionary and hidden Markov model are the same. On
blocks with letters and digits they are not. There jieba's dictionary has but a few words that mix
both (`jieba_mixed_words.txt`); without one, the Han parts of a block are cut as if alone.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

# The pattern that jieba splits a text with: a block is cut by the dictionary, the rest by characters.
_BLOCKS = re.compile(r"([\u4e00-\u9fd5a-zA-Z0-9+#&._%\-]+)")
_HAN = re.compile(r"[\u4e00-\u9fd5]+")
_PARTS = re.compile(r"[\u4e00-\u9fd5]+|[^\u4e00-\u9fd5]+")
# How jieba splits what is not Han.
_LATIN = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
_MIXED_WORDS = Path(__file__).with_name("jieba_mixed_words.txt")


def chinese_runs(text: str) -> list[str]:
    """The blocks of a text that are cut on their own, and the single characters between them."""
    runs: list[str] = []
    pieces = _BLOCKS.split(text)
    for between, block in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if between != " ":
            runs += "".join(between.split())
        if block:
            runs.append(block)
    return runs


def cut_chinese(run: str) -> list[str]:
    """The words of one block."""
    if len(run) == 1:
        return [run]
    if _HAN.fullmatch(run):
        return _rjieba()(run)
    return _cut_mixed(run) or jieba_cut()(run)


def _cut_mixed(run: str) -> list[str] | None:
    """The words of a block with letters or digits; None where jieba must look at the whole."""
    if _mixed_word().search(run):
        return None
    words: list[str] = []
    parts = _PARTS.findall(run)
    for place, part in enumerate(parts):
        if not _HAN.match(part):
            words += filter(None, _LATIN.split(part))
            continue
        cut = _rjieba()(part)
        # Single characters beside letters go to the Markov model even where their join is a word.
        if (place and _are_single(cut[:2])) or (place + 1 < len(parts) and _are_single(cut[-2:])):
            return None
        words += cut
    return words


def _are_single(words: list[str]) -> bool:
    return len(words) == 2 and len(words[0]) == len(words[1]) == 1


@cache
def _mixed_word() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, _MIXED_WORDS.read_text("utf-8").split())))


@cache
def _rjieba():
    import rjieba

    return rjieba.cut


@cache
def jieba_cut() -> Callable[[str], list[str]]:
    """What jieba itself cuts with; its warnings at import (old escapes, `pkg_resources`) are not ours."""
    import logging
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel(logging.WARNING)
    return jieba.lcut
