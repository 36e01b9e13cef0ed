"""What is put in the place of personal data."""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from dataflow_assets.operators.refiners.pii.spans import Span

_PSEUDONYM_HEX_DIGITS = 12
# Values that belong to nobody: names and addresses for documentation (RFC 2606, RFC 5737, RFC 3849),
# numbers for fiction (NANPA 555-01xx), service numbers of China Mobile, numbers of a date of birth in
# 1900, card numbers that payment services publish for tests.
HARMLESS: Mapping[str, Sequence[str]] = {
    "email": ("email@example.com", "firstname.lastname@example.org", "info@example.net"),
    "ipv4": ("192.0.2.1", "198.51.100.1", "203.0.113.1"),
    "ipv6": ("2001:db8::1", "2001:db8::2", "2001:db8::3"),
    "phone": ("+1 202 555 0100", "+1 202 555 0101", "+1 202 555 0102"),
    "mobile": ("13800138000", "13800100500", "13800210500"),
    "id_card": ("110101190001010014", "11010119000101009X"),
    "bank_card": ("4111111111111111", "5555555555554444", "6200000000000005"),
    "passport": ("E00000000", "E00000001", "E00000002"),
    "licence_plate": ("京A00000", "京A00001", "京A00002"),
    "person": ("A. Nonymous", "B. Nonymous", "C. Nonymous"),
}

Substitute = Callable[[Span, int], str]
"""Gives the new text of a span; the number counts the other values of its kind before it in the text."""


def by_tag(tags: Mapping[str, str]) -> Substitute:
    """The tag of the kind."""
    return lambda span, _: tags[span.kind]


def by_pseudonym(tags: Mapping[str, str], key: bytes) -> Substitute:
    """The tag with 12 hexadecimal digits of an HMAC-SHA256 of tag and value.

    The same value has the same pseudonym in all texts made with one key, and without the key nobody
    finds the value by trying all of them. Kinds with one tag share pseudonyms.
    """

    def pseudonym(span: Span, _: int) -> str:
        tag = tags[span.kind]
        digest = hmac.new(key, f"{tag}\0{span.value}".encode(), hashlib.sha256).hexdigest()
        body, end = (tag[:-1], tag[-1]) if tag.endswith((">", "]", ")", "}")) else (tag, "")
        return f"{body}_{digest[:_PSEUDONYM_HEX_DIGITS]}{end}"

    return pseudonym


def by_rotation() -> Substitute:
    """A harmless value of the kind: the first one for the first value of a text, and so on."""

    def rotated(span: Span, number: int) -> str:
        values = HARMLESS[span.kind]
        return values[number % len(values)]

    return rotated


def substituted(text: str, spans: Sequence[Span], substitute: Substitute) -> tuple[str, dict[str, int]]:
    """The text with its spans, which are in order, replaced; and how many of each kind there were."""
    numbers: dict[tuple[str, str], int] = {}
    values_of_kind: Counter[str] = Counter()
    parts, done = [], 0
    for span in spans:
        known = (span.kind, span.value)
        if known not in numbers:
            numbers[known] = values_of_kind[span.kind]
            values_of_kind[span.kind] += 1
        parts += [text[done : span.start], substitute(span, numbers[known])]
        done = span.end
    return "".join([*parts, text[done:]]), dict(sorted(Counter(span.kind for span in spans).items()))
