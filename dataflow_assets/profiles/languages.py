"""The language of a text at a glance: by its script, in Latin script by its small words.

A profile asks it of some hundred texts in every worker process: py3langid, which knows more languages,
takes 0.6 CPU-seconds to load.
"""

import re
from collections.abc import Mapping, Sequence

from dataflow_assets.text.language import HAN_LETTERS, KANA_LETTERS

_CHARS = 400
_MIN_LETTERS, _MIN_CJK_LETTERS = 10, 4
_SCRIPTS: list[
    tuple[str, str, float]
] = [  # a language, its letters, the share of them from which it is meant
    ("ja", KANA_LETTERS, 0.1),
    ("ko", "\uac00-\ud7af\u1100-\u11ff", 0.3),
    ("zh", HAN_LETTERS, 0.3),
    ("uk", "іїєґІЇЄҐ", 0.02),
    ("ru", "\u0400-\u04ff", 0.5),
    ("el", "\u0370-\u03ff", 0.5),
    ("he", "\u0590-\u05ff", 0.5),
    ("fa", "پچژگ", 0.02),
    ("ar", "\u0600-\u06ff", 0.5),
    ("hi", "\u0900-\u097f", 0.4),
    ("th", "\u0e00-\u0e7f", 0.5),
]
_LETTERS = [(language, re.compile(f"[{letters}]"), share) for language, letters, share in _SCRIPTS]
_SMALL_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and to in is that for it with as was on are this be by from at have not or an you",
        "de": "der die und das den von zu mit sich des auf für ist im dem nicht ein eine als auch es an",
        "fr": "le la les et des est en un une du dans que pour qui sur pas au par plus avec ce il sont",
        "es": "el la los las de que en un una por con del para es se al lo como más su pero sus está",
        "pt": "o os as de que em um uma por com do da para é se ao dos das não mais como foi são",
        "it": "il lo gli di che un una per con del della è si nel alla dei le sono da come anche più",
        "nl": "de het een van en in is dat op te zijn met voor niet aan er om ook als maar door bij",
        "pl": "i w na z się nie do to że jest o jak po co od za przez dla są tym ale być oraz",
        "tr": "ve bir bu da de için ile çok daha olarak gibi en kadar olan ne sonra ama var",
        "vi": "và của là có được cho các trong một không với những người này khi đã để từ",
        "id": "yang dan di dari untuk dengan ini itu pada tidak adalah dalam akan ke atau oleh juga",
        "sv": "och att det i som en på är av för med till den har de inte om ett han men",
    }.items()
}

_LANGUAGES_OF: Mapping[str, Sequence[str]] = {
    word: [language for language, words in _SMALL_WORDS.items() if word in words]
    for word in frozenset().union(*_SMALL_WORDS.values())
}
_NOT_LATIN = re.compile("[\u0370-\u1dff\u2e80-\uffff\U00020000-\U000323af]")


def language_at_a_glance(text: str) -> str | None:
    """ISO 639-1 code of the text's beginning; None for too few letters, `other` where it is none of these."""
    start = text[:_CHARS]
    if not start.isascii() and _NOT_LATIN.search(start):
        letters = sum(map(str.isalpha, start))
        for language, pattern, share in _LETTERS:
            if len(pattern.findall(start)) >= max(_MIN_CJK_LETTERS, share * letters):
                return language
    listed = start.lower().split()
    if sum(map(len, listed)) < _MIN_LETTERS or not any(map(str.isalpha, start)):
        return None
    words = set(listed)
    votes = dict.fromkeys(_SMALL_WORDS, 0)
    for word in words & _LANGUAGES_OF.keys():
        for language in _LANGUAGES_OF[word]:
            votes[language] += 1
    best = max(votes, key=votes.__getitem__)
    return best if votes[best] >= max(1, 0.08 * len(words)) else "other"
