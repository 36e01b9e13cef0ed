"""Gopher's rules on what a text repeats."""

from collections.abc import Sequence
from functools import partial

from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import Rule, RuleFilter, RuleParams, Threshold, threshold_field
from dataflow_assets.operators.registry import register
from dataflow_assets.text.document import Document

_TOP = (2, 3, 4)
_DUPLICATE = (5, 6, 7, 8, 9, 10)


def duplicates(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces are equal to one before, and their characters."""
    if len(set(pieces)) == len(pieces):
        return 0, 0
    seen: set[str] = set()
    again = [piece for piece in pieces if piece in seen or seen.add(piece)]
    return len(again), sum(map(len, again))


def _chars(document: Document, profile: Profile) -> float:
    return float(len(document.text))


def _duplicate_paragraphs(document: Document, profile: Profile) -> float:
    return duplicates(document.paragraphs)[0] / len(document.paragraphs)


def _duplicate_paragraph_chars(document: Document, profile: Profile) -> float | None:
    return _share(duplicates(document.paragraphs)[1], document)


def _duplicate_lines(document: Document, profile: Profile) -> float:
    return duplicates(document.line_blocks)[0] / len(document.line_blocks)


def _duplicate_line_chars(document: Document, profile: Profile) -> float | None:
    return _share(duplicates(document.line_blocks)[1], document)


def _top_ngram(n: int, document: Document, profile: Profile) -> float | None:
    return _share(document.ngrams.top_chars(n), document)


def _duplicate_ngrams(n: int, document: Document, profile: Profile) -> float | None:
    return _share(document.ngrams.duplicate_chars(n), document)


def _share(chars: int | None, document: Document) -> float | None:
    return None if chars is None or not document.text else chars / len(document.text)


def _top_is_within(n: int, document: Document, profile: Profile, threshold: float) -> bool:
    return document.ngrams.top_is_within(n, threshold, len(document.text))


def _duplicates_are_within(n: int, document: Document, profile: Profile, threshold: float) -> bool:
    return document.ngrams.duplicates_are_within(n, threshold, len(document.text))


class _GopherRepetitionParams(RuleParams):
    min_chars: Threshold = threshold_field("The fewest characters: an empty text is dropped.")
    max_duplicate_paragraphs: Threshold = threshold_field("The largest share of repeated paragraphs.")
    max_duplicate_paragraph_chars: Threshold = threshold_field("The largest share of their characters.")
    max_duplicate_lines: Threshold = threshold_field("The largest share of repeated lines.")
    max_duplicate_line_chars: Threshold = threshold_field("The largest share of their characters.")
    max_top_2_gram: Threshold = threshold_field("The largest share of the most frequent 2-gram.")
    max_top_3_gram: Threshold = threshold_field("The same of the 3-gram.")
    max_top_4_gram: Threshold = threshold_field("The same of the 4-gram.")
    max_duplicate_5_grams: Threshold = threshold_field("The largest share of repeated 5-grams.")
    max_duplicate_6_grams: Threshold = threshold_field("The same of 6-grams.")
    max_duplicate_7_grams: Threshold = threshold_field("The same of 7-grams.")
    max_duplicate_8_grams: Threshold = threshold_field("The same of 8-grams.")
    max_duplicate_9_grams: Threshold = threshold_field("The same of 9-grams.")
    max_duplicate_10_grams: Threshold = threshold_field("The same of 10-grams.")


@register
class FilterGopherRepetition(RuleFilter):
    """Keeps the rows whose text repeats little, by Gopher's rules, with datatrove's verdicts and reasons.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Words and punctuation marks are spaCy's in English and jieba's in Chinese. Rules and reasons in
    their order: no characters (`empty`), repeated paragraphs and their characters (`dup_para_frac`,
    `dup_para_char_frac`), repeated lines (`dup_line_frac`, `dup_line_char_frac`), the most frequent
    2- to 4-gram (`top_2_gram` and so on), repeated 5- to 10-grams (`duplicated_5_n_grams` and so on);
    characters count as a share of the text's. Lines are split at runs of newlines, paragraphs at
    two or more. Rejected rows have `reject_value` and `reject_threshold` too. Raises nothing on text.
    Source: Rae et al. 2021, table A1; Chinese thresholds of FineWeb-2 (cmn_Hani).

    Example:
        - {name: varied, type: filter_gopher_repetition, params: {max_duplicate_lines: 0.2}}
    """

    name = "filter_gopher_repetition"
    needs_words = True
    Params = _GopherRepetitionParams
    params: _GopherRepetitionParams
    rules = (
        Rule("empty", "chars", _chars, min="min_chars"),
        Rule("dup_para_frac", "duplicate_paragraphs", _duplicate_paragraphs, max="max_duplicate_paragraphs"),
        Rule(
            "dup_para_char_frac",
            "duplicate_paragraph_chars",
            _duplicate_paragraph_chars,
            max="max_duplicate_paragraph_chars",
        ),
        Rule("dup_line_frac", "duplicate_lines", _duplicate_lines, max="max_duplicate_lines"),
        Rule(
            "dup_line_char_frac",
            "duplicate_line_chars",
            _duplicate_line_chars,
            max="max_duplicate_line_chars",
        ),
        *(
            Rule(
                f"top_{n}_gram",
                f"top_{n}_gram",
                partial(_top_ngram, n),
                max=f"max_top_{n}_gram",
                surely_kept=partial(_top_is_within, n),
            )
            for n in _TOP
        ),
        *(
            Rule(
                f"duplicated_{n}_n_grams",
                f"duplicate_{n}_grams",
                partial(_duplicate_ngrams, n),
                max=f"max_duplicate_{n}_grams",
                surely_kept=partial(_duplicates_are_within, n),
            )
            for n in _DUPLICATE
        ),
    )
