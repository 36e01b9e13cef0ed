"""Which language a text is in and how sure that is, by the model that comes with py3langid."""

from collections.abc import Collection
from functools import cache
from typing import Any

from dataflow_assets.optional_packages import require

UNDETERMINED = "und"
NEEDED = {"py3langid": "language"}  # the package, and the extra that brings it
# The model tells Wu and Cantonese from other Chinese, and is seldom sure of it: one written language.
_CHINESE = frozenset({"yue", "wuu"})


def check_installed(asker: str) -> None:
    """Raises ConfigError, with the command to run, where py3langid is missing."""
    require(NEEDED, asker)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def check_known(languages: Collection[str]) -> None:
    """Raises ValueError for a code that the model does not know; they are of ISO 639-1, else 639-3."""
    known = _identifier().labels
    if unknown := sorted(set(languages) - set(known)):
        raise ValueError(
            f"py3langid knows no language {', '.join(map(repr, unknown))}; "
            f"it knows: {', '.join(sorted(known))}"
        )


def identify(text: str, apart: Collection[str] = ()) -> tuple[str, float]:
    """The likeliest language of a text and its probability, 0 to 1; `und` and 0 without letters.

    `zh` includes Wu (`wuu`) and Cantonese (`yue`), except those named in `apart`.
    """
    if not any(map(str.isalpha, text)):
        return UNDETERMINED, 0.0
    scores: dict[str, float] = {}
    for code, score in _identifier().rank(text):
        language = "zh" if code in _CHINESE and code not in apart else code
        scores[language] = scores.get(language, 0.0) + score
    best = max(scores, key=scores.__getitem__)
    return best, min(scores[best], 1.0)
