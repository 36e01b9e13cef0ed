"""Gopher's rules on the quality of a text."""

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
from dataflow_assets.text.characters import ELLIPSES
from dataflow_assets.text.document import Document


def _words(document: Document, profile: Profile) -> float:
    return float(document.words.written)


def _mean_word_length(document: Document, profile: Profile) -> float | None:
    return document.words.mean_written_length


def _hashes_per_word(document: Document, profile: Profile) -> float | None:
    return _per(document.text.count("#"), len(document.words))


def _ellipses_per_word(document: Document, profile: Profile) -> float | None:
    return _per(sum(map(document.text.count, ELLIPSES)), len(document.words))


def _bullet_lines(document: Document, profile: Profile) -> float | None:
    return _per(sum(line.lstrip().startswith(("•", "-")) for line in document.lines), len(document.lines))


def _ellipsis_lines(document: Document, profile: Profile) -> float | None:
    return _per(sum(line.rstrip().endswith(ELLIPSES) for line in document.lines), len(document.lines))


def _words_with_letter(document: Document, profile: Profile) -> float | None:
    return _per(document.words.with_letter, len(document.words))


def _stop_words(document: Document, profile: Profile) -> float:
    return float(document.words.how_many_of(profile.strings("stop_words")))


def _per(count: int, of: int) -> float | None:
    return count / of if of else None


class _GopherQualityParams(RuleParams):
    min_words: Threshold = threshold_field("The fewest words that are not all punctuation.")
    max_words: Threshold = threshold_field("The most words that are not all punctuation.")
    min_mean_word_length: Threshold = threshold_field("The least mean length of these words, in characters.")
    max_mean_word_length: Threshold = threshold_field(
        "The largest mean length of these words, in characters."
    )
    max_hashes_per_word: Threshold = threshold_field("The most `#` per word or mark.")
    max_ellipses_per_word: Threshold = threshold_field("The most `...` and `…` per word or mark.")
    max_bullet_lines: Threshold = threshold_field("The largest share of lines that begin with `•` or `-`.")
    max_ellipsis_lines: Threshold = threshold_field("The largest share of lines that end in an ellipsis.")
    min_words_with_letter: Threshold = threshold_field("The least share of words with a letter.")
    min_stop_words: Threshold = threshold_field("The fewest different stop words.")
    stop_words: list[Phrase] | None = Field(None, description="The stop words. Default: of the profile.")


@register
class FilterGopherQuality(RuleFilter):
    """Keeps the rows whose text passes Gopher's quality rules, with datatrove's verdicts and reasons.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Words and punctuation marks are spaCy's in English and jieba's in Chinese. Rules and reasons in
    their order: words that are not all punctuation (`gopher_short_doc`, `gopher_long_doc`), their
    mean length (`gopher_below_avg_threshold`, `gopher_above_avg_threshold`), hashes and ellipses per
    word (`gopher_too_many_hashes`, `gopher_too_many_ellipsis`), bullet lines
    (`gopher_too_many_bullets`), lines that end in an ellipsis (`gopher_too_many_end_ellipsis`), words
    with a letter (`gopher_below_alpha_threshold`), stop words (`gopher_enough_stop_words`). Rejected
    rows have `reject_value` and `reject_threshold` too. An empty text is `gopher_short_doc`; with
    `min_words: off` a ratio of nothing is not defined and drops nothing. Raises nothing on text.
    Source: Rae et al. 2021, A1; Chinese thresholds of FineWeb-2 (cmn_Hani).

    Example:
        - {name: good, type: filter_gopher_quality, params: {min_words: 30}}
    """

    name = "filter_gopher_quality"
    needs_words = True
    Params = _GopherQualityParams
    params: _GopherQualityParams
    rules = (
        Rule("gopher_short_doc", "words", _words, min="min_words"),
        Rule("gopher_long_doc", "words", _words, max="max_words"),
        Rule("gopher_below_avg_threshold", "mean_word_length", _mean_word_length, min="min_mean_word_length"),
        Rule("gopher_above_avg_threshold", "mean_word_length", _mean_word_length, max="max_mean_word_length"),
        Rule("gopher_too_many_hashes", "hashes_per_word", _hashes_per_word, max="max_hashes_per_word"),
        Rule(
            "gopher_too_many_ellipsis", "ellipses_per_word", _ellipses_per_word, max="max_ellipses_per_word"
        ),
        Rule("gopher_too_many_bullets", "bullet_lines", _bullet_lines, max="max_bullet_lines"),
        Rule("gopher_too_many_end_ellipsis", "ellipsis_lines", _ellipsis_lines, max="max_ellipsis_lines"),
        Rule(
            "gopher_below_alpha_threshold",
            "words_with_letter",
            _words_with_letter,
            min="min_words_with_letter",
        ),
        Rule("gopher_enough_stop_words", "stop_words", _stop_words, min="min_stop_words"),
    )
