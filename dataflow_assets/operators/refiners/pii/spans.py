"""Where personal data stands in a text: spans of several kinds, none inside another."""

from bisect import bisect
from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """Characters `start` to `end` of a text are of this kind; `value` is what makes two spans equal."""

    start: int
    end: int
    kind: str
    value: str


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """The spans in the order of the text. Of two that overlap the one that was given first stays."""
    kept: list[Span] = []
    for span in spans:
        place = bisect(kept, span)
        if (place == 0 or kept[place - 1].end <= span.start) and (
            place == len(kept) or span.end <= kept[place].start
        ):
            kept.insert(place, span)
    return kept


_WIDE = "０１２３４５６７８９＋－．＠Ｘｘ"
_FOLDED = str.maketrans(_WIDE, "0123456789+-.@Xx")
WIDE_CHARACTERS = f"[{_WIDE}]"


def folded(text: str) -> str:
    """The text with full-width digits and the signs of numbers in ASCII, every character in its place."""
    return text.translate(_FOLDED)
