"""Filters by n-grams that come again, as data-juicer and open-dataflow measure them."""

from collections import Counter

import numpy as np
from pydantic import Field

from dataflow_assets.operators.filters.ngram_repetition import repeated_share
from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import RuleFilter
from dataflow_assets.operators.filters.single_rule import (
    AtLeast,
    AtMost,
    PlainWordsFilter,
    at_least,
    at_most,
    share,
)
from dataflow_assets.operators.registry import register
from dataflow_assets.text.document import Document

_AROUND_WORDS = "\"'“”‘’.,;:!?()[]{}<>…*_，。、；：！？（）《》「」『』—-"
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def _character_repetition(document: Document, profile: Profile) -> float | None:
    """The n-grams that come most often, as many kinds as the root of all kinds, among all n-grams."""
    counts = _character_ngram_counts(document.text, int(profile.number("n") or 1))
    if not len(counts):
        return None
    most = min(int(len(counts) ** 0.5), int((counts > 1).sum()))
    return float(np.sort(counts)[len(counts) - most :].sum() / counts.sum())


def _character_ngram_counts(text: str, n: int) -> np.ndarray:
    """How often each n-gram of code points stands in the text, told apart by 64-bit hashes."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    length = len(points) - n + 1
    if length < 1:
        return np.zeros(0, np.int64)
    hashes = np.zeros(length, np.uint64)
    for start in range(n):
        hashes = (hashes ^ points[start : start + length]) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return np.unique(hashes, return_counts=True)[1]


def _word_repetition(document: Document, profile: Profile) -> float | None:
    n = int(profile.number("n") or 1)
    words = [word.lower().strip(_AROUND_WORDS) for word in document.plain_words]
    words = [word for word in words if word]
    counts = Counter(zip(*(words[start:] for start in range(n)), strict=False))
    return share(sum(count for count in counts.values() if count > 1), counts.total())


def _diversity(document: Document, profile: Profile) -> float:
    return 1 - repeated_share(document.text, int(profile.number("n") or 1))


class _RepetitionParams(AtMost):
    n: int | None = Field(None, ge=1, le=100, description="The length of an n-gram. Default: of the profile.")


class _DiversityParams(AtLeast):
    n: int | None = Field(None, ge=1, le=100, description="The length of an n-gram. Default: of the profile.")


@register
class FilterCharacterRepetition(RuleFilter):
    """Keeps the rows in which no runs of characters come again and again.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `character_repetition_share` (float64): of all n-grams of `n`
    characters (10), those of the most frequent kinds, as many kinds as the square root of all kinds, of those
    that come more than once. Bound: at most 0.5 in both languages. Rejected rows have the reason
    `repeated_characters`. A text shorter than `n` has no share and stays. Raises nothing on text. Source:
    data-juicer's character_repetition_filter.

    Example:
        - {name: no_copies, type: filter_character_repetition, params: {max: 0.2}}
    """

    name = "filter_character_repetition"
    Params = _RepetitionParams
    params: _RepetitionParams
    rules = (at_most("repeated_characters", "share", _character_repetition),)


@register
class FilterWordRepetition(PlainWordsFilter):
    """Keeps the rows in which no runs of words come again and again.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `word_repetition_share` (float64): of all n-grams of `n` words (10),
    those that come more than once, each place counted. Case and marks around a word count not. An English
    word is what stands between white space, a Chinese one is jieba's. Bound: at most 0.5 in both languages.
    Rejected rows have the reason `repeated_words`. A text of fewer than `n` words has no share and stays.
    Raises nothing on text. Chinese words need the extra `text`. Source: data-juicer's word_repetition_filter.

    Example:
        - {name: no_copies, type: filter_word_repetition, params: {n: 5, max: 0.2}}
    """

    name = "filter_word_repetition"
    Params = _RepetitionParams
    params: _RepetitionParams
    rules = (at_most("repeated_words", "share", _word_repetition),)


@register
class FilterNgramDiversity(RuleFilter):
    """Keeps the rows whose n-grams are mostly different ones.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `ngram_diversity_share` (float64): different n-grams of `n` tokens
    (5) among all, 1 minus what `filter_ngram_repetition` measures. A token is one Chinese or Japanese
    character or a run of other letters and digits; case counts not. Bound: at least 0.8 in both languages.
    Rejected rows have the reason `few_different_ngrams`. A text of fewer than `n` tokens has a share of 1.
    Raises nothing on text. Source: open-dataflow's NgramFilter, which drops such short texts.

    Example:
        - {name: varied, type: filter_ngram_diversity, params: {n: 3, min: 0.6}}
    """

    name = "filter_ngram_diversity"
    Params = _DiversityParams
    params: _DiversityParams
    rules = (at_least("few_different_ngrams", "share", _diversity),)
