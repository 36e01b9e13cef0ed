"""Which language a text is in, by its script: what chooses a prompt and what a gate asks."""

import re
from typing import Literal

from dataflow_assets.text.language_identification import identify

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
# A text is Chinese from this share of Han characters on (the rule of the package's profiles).
HAN_SHARE = 0.2
_KANA_SHARE = 0.05
_LATIN_SHARE = 0.8
HAN_LETTERS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # within a class
KANA_LETTERS = "\u3041-\u30ff"
_HAN = re.compile(f"[{HAN_LETTERS}]")
_KANA = re.compile(f"[{KANA_LETTERS}]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")


def han_share(text: str) -> float:
    """The Han characters among those that are not white space, 0 to 1; 0 for a blank text."""
    written = sum(map(len, text.split()))
    return len(_HAN.findall(text)) / written if written else 0.0


def language_of(text: str) -> Language:
    """`zh` from a Han share of .2 on, else `en`: which of the shipped prompts fits the text."""
    return "zh" if han_share(text) >= HAN_SHARE else "en"


def width(text: str) -> int:
    """The length in Latin letters: a Han character says about as much as two."""
    return len(text) + len(_HAN.findall(text))


def is_written_in(text: str, language: str) -> bool:
    """Whether the script fits: `zh` is Han with little kana, `en` is Latin letters.

    Any other code is asked of the library py3langid, by its best guess. A text without letters
    fits every language.
    """
    letters = sum(map(str.isalpha, text))
    if not letters:
        return True
    if language == "zh":
        return han_share(text) >= HAN_SHARE and len(_KANA.findall(text)) < _KANA_SHARE * letters
    if language == "en":
        return len(_LATIN.findall(text)) >= _LATIN_SHARE * letters
    return identify(text, apart=(language,))[0] == language
