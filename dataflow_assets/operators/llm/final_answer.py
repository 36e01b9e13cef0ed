"""The final answer within a text that reasons, and when two of them are the same."""

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Literal

import regex

Extract = Literal["auto", "boxed", "number", "choice", "text"]
_BOXED = "\\boxed{"
_PATTERN_TIMEOUT_S = 1.0
_MARKER = re.compile(
    r"(?:final answer|answer|最终答案|答案|答)\W{0,3}(?:is|是|为)?\s*[:：]\s*([^\n]+)", re.IGNORECASE
)
_NUMBER = re.compile(r"[-+]?\d[\d,，]*(?:\.\d+)?")
_CHOICE = re.compile(r"(?<![A-Za-z])\(?([A-J])\)?(?![A-Za-z])")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}")
_ENDS = " \t\n$*_`'\"“”。.,，;；!！:：()（）"


def final_answer(text: str, extract: Extract = "auto", pattern: str | None = None) -> str | None:
    r"""The final answer as it stands in the text; None where there is none.

    `boxed` is the last `\boxed{…}`, `number` the last number, `choice` the last single letter A to J,
    `text` the whole. `auto` is the first that is found of: boxed, the rest of the last line with
    `Answer:` (or 答案：), the whole. A `pattern` goes before all: its first group, or its whole match.
    """
    if pattern is not None:
        found = list(regex.finditer(pattern, text, timeout=_PATTERN_TIMEOUT_S))
        return found[-1].group(1 if found[-1].re.groups else 0) if found else None
    if extract == "text":
        return text
    if extract == "boxed":
        return _last_boxed(text)
    if extract == "auto":
        return next((found for found in (_last_boxed(text), _last(_MARKER, text)) if found is not None), text)
    return _last(_NUMBER if extract == "number" else _CHOICE, text)


def _last(pattern: "re.Pattern[str]", text: str) -> str | None:
    found = pattern.findall(text)
    return found[-1] if found else None


def _last_boxed(text: str) -> str | None:
    start = text.rfind(_BOXED)
    if start < 0:
        return None
    depth = 0
    for position in range(start + len(_BOXED) - 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if not depth:
            return text[start + len(_BOXED) : position]
    return None


def normalized(answer: str) -> str:
    """The form in which two final answers are compared: width, case, marks around it, thousands."""
    plain = unicodedata.normalize("NFKC", _WRAPPED.sub(r"\1", answer))
    plain = " ".join(plain.split()).strip(_ENDS).casefold()
    try:
        number = Decimal(plain.replace(",", ""))
        return f"{number.normalize():f}" if number.is_finite() and abs(number.adjusted()) < 100 else plain
    except InvalidOperation:
        return plain
