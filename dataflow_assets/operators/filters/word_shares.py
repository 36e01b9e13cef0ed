"""Filters by the share of certain words or characters: capitals, letters, stop words, letters and digits."""

from pydantic import Field

from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import Phrase, RuleFilter
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
from dataflow_assets.text.language import is_written_in

_AROUND_WORDS = "\"'“”‘’.,;:!?()[]{}<>…*_"


def _capital_words(document: Document, profile: Profile) -> float | None:
    words = document.plain_words
    return share(sum(map(str.isupper, words)), len(words))


def _alphabetic_words(document: Document, profile: Profile) -> float | None:
    words = document.plain_words
    return share(sum(word.isalpha() or any(map(str.isalpha, word)) for word in words), len(words))


def _stop_words(document: Document, profile: Profile) -> float | None:
    if document.language == "zh" and not is_written_in(document.text, "zh"):
        return None
    stop_words = frozenset(profile.strings("stop_words"))
    words = document.plain_words
    return share(sum(word.lower().strip(_AROUND_WORDS) in stop_words for word in words), len(words))


def _alphanumeric(document: Document, profile: Profile) -> float | None:
    return share(sum(map(str.isalnum, document.text)), len(document.text))


@register
class FilterCapitalWords(PlainWordsFilter):
    """Keeps the rows that have few words in capital letters.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `capital_words_share` (float64): of all words, those whose letters
    are all capital. An English word is what stands between white space, a Chinese one is jieba's, without
    punctuation marks. Bound: at most 0.2 in both languages. Rejected rows have the reason `capital_words`. A
    blank text has no share and stays. Raises nothing on text. Chinese words need the extra `text`. Source:
    open-dataflow's CapitalWordsFilter.

    Example:
        - {name: not_shouted, type: filter_capital_words, params: {max: 0.1}}
    """

    name = "filter_capital_words"
    Params = AtMost
    params: AtMost
    rules = (at_most("capital_words", "share", _capital_words),)


@register
class FilterAlphabeticWords(PlainWordsFilter):
    """Keeps the rows most of whose words have a letter: no tables of numbers.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `alphabetic_words_share` (float64): of all words, those with a letter
    of any script. An English word is what stands between white space, a Chinese one is jieba's, without
    punctuation marks. Bound: at least 0.8, in Chinese 0.735. Rejected rows have the reason
    `alphabetic_words`. A blank text has no share and stays. Raises nothing on text. Chinese words need the
    extra `text`. Source: Gopher (Rae et al. 2021); the Chinese bound of FineWeb-2.

    Example:
        - {name: words_not_numbers, type: filter_alphabetic_words, params: {min: 0.6}}
    """

    name = "filter_alphabetic_words"
    Params = AtLeast
    params: AtLeast
    rules = (at_least("alphabetic_words", "share", _alphabetic_words),)


class _StopWordParams(AtLeast):
    stop_words: list[Phrase] | None = Field(
        None, description="The stop words in lower case. Default: of the profile."
    )


@register
class FilterStopWordShare(PlainWordsFilter):
    """Keeps the rows that have the small words of running text: no lists of names and keywords.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `stop_word_share_share` (float64): of all words, those in
    `stop_words` (articles, pronouns, prepositions, particles), case and marks around a word not counted. An
    English word is what stands between white space, a Chinese one is jieba's, without punctuation marks.
    Bound: at least 0.3, in Chinese 0.05. Rejected rows have the reason `few_stop_words`. A blank
    text and a Japanese one have no share and stay. Raises nothing on text. Chinese words need the extra
    `text`. Source: data-juicer's stopwords_filter; lists and the Chinese bound are our own.

    Example:
        - {name: running_text, type: filter_stop_word_share, params: {min: 0.2}}
    """

    name = "filter_stop_word_share"
    Params = _StopWordParams
    params: _StopWordParams
    rules = (at_least("few_stop_words", "share", _stop_words),)


@register
class FilterAlphanumericShare(RuleFilter):
    """Keeps the rows that consist of letters and digits to a good part.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `alphanumeric_share_share` (float64): letters and digits of any
    script among all characters, white space included. Bound: at least 0.25 in both languages. Rejected rows
    have the reason `few_alphanumeric`. An empty text has no share and stays. Raises nothing on text. Source:
    data-juicer's alphanumeric_filter.

    Example:
        - {name: letters, type: filter_alphanumeric_share, params: {min: 0.6}}
    """

    name = "filter_alphanumeric_share"
    Params = AtLeast
    params: AtLeast
    rules = (at_least("few_alphanumeric", "share", _alphanumeric),)
