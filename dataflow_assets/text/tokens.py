"""Pieces of a text by script alone, without a dictionary."""

import re

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Scripts that are written without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
UNSPACED = f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{_CJK}"
_CHARACTER_OR_RUN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


def characters_or_runs(text: str) -> list[str]:
    """Chinese and Japanese by character, everything else by runs of letters and digits; no marks."""
    return _CHARACTER_OR_RUN.findall(text)
