"""Filters texts with numbers of Chinese identity cards, and texts about such documents."""

import re
from functools import cache

from pydantic import Field

from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import (
    Phrase,
    Rule,
    RuleFilter,
    RuleParams,
    Threshold,
    threshold_field,
)
from dataflow_assets.operators.registry import register
from dataflow_assets.text.check_digits import is_id_card
from dataflow_assets.text.document import Document

# `\b` does not fire between a Chinese character and a digit.
_NUMBER = re.compile(r"(?<![0-9A-Za-z])([1-9][0-9]{5})([0-9]{8})([0-9]{3})([0-9Xx])(?![0-9A-Za-z])")


def _numbers(document: Document, profile: Profile) -> float:
    return float(sum(is_id_card(found[0]) for found in _NUMBER.finditer(document.text)))


def _terms(document: Document, profile: Profile) -> float:
    return float(len(_term_pattern(profile.strings("terms")).findall(document.text)))


@cache
def _term_pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    """The terms in any case, whole where they are Latin letters, with any white space between words."""
    phrases = "|".join(r"\s*".join(map(re.escape, term.split())) for term in terms)
    return re.compile(rf"(?<![A-Za-z])(?:{phrases or '(?!)'})(?![A-Za-z])", re.IGNORECASE)


class _IdCardParams(RuleParams):
    max_numbers: Threshold = threshold_field("The most valid numbers.")
    max_terms: Threshold = threshold_field("The most terms.")
    terms: list[Phrase] | None = Field(
        None, description="Words and phrases of identity documents, in any case. Default: of the profile."
    )


@register
class FilterIdCard(RuleFilter):
    """Keeps the rows without Chinese ID card numbers that are not about identity documents.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `id_card_numbers` and `id_card_terms` (float64). A number has 17
    digits and a digit or X, is no part of a longer number or Latin word, and has a known region, a real
    date of birth and the right check digit (GB 11643). Bounds: at most 0 numbers and 2 terms in both
    languages. Rejected rows have the reason `id_card_numbers` or `id_card_terms`. Raises nothing on text.
    `redact_pii` masks numbers instead. Source: open-dataflow's IDCardFilter counts terms (also in
    `did not`) from 3 on, not numbers.

    Example:
        - {name: no_id_cards, type: filter_id_card, params: {max_terms: "off"}}
    """

    name = "filter_id_card"
    Params = _IdCardParams
    params: _IdCardParams
    rules = (
        Rule("id_card_numbers", "numbers", _numbers, max="max_numbers"),
        Rule("id_card_terms", "terms", _terms, max="max_terms"),
    )
