"""Chinese words as jieba cuts them: blocks of Han characters by rjieba, mixed blocks by jieba itself.

The two are equal on blocks of Han characters (dictionary and hidden Markov model are the same);
on blocks with letters and digits they are not, so those go to jieba.
"""

import re
from functools import cache

# The pattern that jieba splits a text with: a block is cut by the dictionary, the rest by characters.
_BLOCKS = re.compile(r"([\u4e00-\u9fd5a-zA-Z0-9+#&._%\-]+)")
_HAN = re.compile(r"[\u4e00-\u9fd5]+")


def chinese_runs(text: str) -> list[str]:
    """The blocks of a text that are cut on their own, and the single characters between them."""
    runs: list[str] = []
    pieces = _BLOCKS.split(text)
    for between, block in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
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
    return _jieba()(run)


@cache
def _rjieba():
    import rjieba

    return rjieba.cut


@cache
def _jieba():
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)
    return jieba.lcut
