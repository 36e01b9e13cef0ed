"""The final answer within a text that reasons, and when two of them are the same."""

import re
import unicodedata
from decimal import Decimal
from typing import Literal

import regex

Extract = Literal["auto", "boxed", "number", "choice", "text"]
_BOXED = "\\boxed{"
_PATTERN_TIMEOUT_S = 1.0
_MARKER = re.compile(
    r"(?:final answer|answer|最终答案|答案|答)\W{0,3}(?:is|是|为)?\s*[:：]\s*([^\n]+)", re.IGNORECASE
)
_NUMBER = re.compile(
    r"(?:(?<![\w)\]}.])[-+−])?(?:(?:\d{1,3}(?:[,，]\d{3})+(?!\d)|\d+)(?:\.\d+)?|(?<![\w.])\.\d+)"
    r"(?:[eE][-+−]?\d+(?![A-Za-z]))?"
)
# A choice is in the group; an `I` or `A` that a sentence goes on after is a word, which takes no group.
_CHOICE = re.compile(
    r"(?<![A-Za-z])\(?(?:I['’]|[AI][ \t]+(?!(?i:is|and|or|because|since|here)\b)[\"'“‘]?[A-Za-z])"
    r"|(?<![A-Za-z])\(?([A-J])\)?(?![A-Za-z])"
)
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}")
_OTHER_WIDTH = re.compile("[\u3000\uff01-\uffee]")
_MARKUP, _END = "*`$ ", ".,;:。… "
# An exclamation mark goes after a word alone: `5!` and `n!` are factorials.
_EXCLAMATION = re.compile(r"(?<=[^\W\d_]{2})!\Z|(?<=[\u3400-\u9fff])!\Z")
_AROUND = re.compile(
    r"""\(([^(),;、]*)\)|\\\(((?:[^\\]|\\[^()])*)\\\)|"([^"]*)"|'([^']*)'|“([^“”]*)”|‘([^‘’]*)’|_{1,2}([^_]+)_{1,2}"""
)
_PLAIN_NUMBER = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,4})?")
_MAX_DIGITS = 100
_LIST = re.compile(r"([(\[{]?)(.*,.*?)([)\]}]?)")
_PADDED = re.compile(r"\s*[-+]?0\d")


def final_answer(text: str, extract: Extract = "auto", pattern: str | None = None) -> str | None:
    r"""The final answer as it stands in the text; None where there is none.

    `boxed` is the last `\boxed{…}`, `number` the last number (5 in `10-5`), `choice` the last single
    letter A to J that is no word of a sentence (`I am`, `A cat`), `text` the whole. `auto` is the first
    that is found of: boxed, the rest of the last line with `Answer:` (or 答案：), the whole. A `pattern`
    goes before all: its first group, or its whole match.
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
    found = [match for match in pattern.findall(text) if match]
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
    r"""The form in which two final answers are compared, the same for all spellings of one.

    Without case, width, `\text{…}`, marks of Markdown and of a sentence's end, quotes and brackets
    around the whole; brackets around a list stay. Numbers lose thousands separators (`1,000`), a plus
    and closing zeros, in a list of them too, which has a comma and a space between: `(3.0,4)` is `(3, 4)`.
    """
    plain = _OTHER_WIDTH.sub(lambda char: unicodedata.normalize("NFKC", char[0]), answer)
    plain = unicodedata.normalize("NFC", plain.replace("−", "-").casefold())
    while (barer := _barer(plain)) != plain:
        plain = barer
    return _number(plain) or _numbers(plain) or plain


def _barer(text: str) -> str:
    """The text without its outermost marks."""
    text = " ".join(_WRAPPED.sub(r"\1", text).split()).strip(_MARKUP).rstrip(_END)
    text = _EXCLAMATION.sub("", text)
    around = _AROUND.fullmatch(text)
    return next(part for part in around.groups() if part is not None) if around else text


def _number(text: str) -> str | None:
    """The one way to write this number; None where it is none, or has too many digits."""
    if not _PLAIN_NUMBER.fullmatch(text):
        return None
    number = Decimal(text.replace(",", ""))
    if abs(number.adjusted()) >= _MAX_DIGITS:
        return None
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    digits = f"{whole}.{fraction}".rstrip("0").rstrip(".")
    return f"-{digits}" if number < 0 else digits


def _numbers(text: str) -> str | None:
    """The one way to write this list of numbers; None where it is none."""
    found = _LIST.fullmatch(text)
    if found is None:
        return None
    for separator in (", ", ","):
        parts = found[2].split(separator)
        numbers = [None if _PADDED.match(part) else _number(part.strip()) for part in parts]
        if len(parts) > 1 and None not in numbers:
            return f"{found[1]}{', '.join(map(str, numbers))}{found[3]}"
    return None
