"""Filters by how much text there is: words, their length and variety, sentences, characters."""

import re
from itertools import islice
from math import ceil

from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import RuleFilter
from dataflow_assets.operators.filters.single_rule import (
    AtLeast,
    PlainWordsFilter,
    Within,
    at_least,
    at_most,
    share,
)
from dataflow_assets.operators.registry import register
from dataflow_assets.text.document import Document

_ENGLISH_SENTENCE = re.compile(r"\b[^.!?\n]+")
_CHINESE_SENTENCE_END = re.compile(r"[。！？!?；;…\n]+|\.+(?=\s|\Z)")


def _words(document: Document, profile: Profile) -> float:
    return float(len(document.plain_words))


def _sentences(document: Document, profile: Profile) -> float:
    if document.language == "en":
        return float(len(_ENGLISH_SENTENCE.findall(document.text)))
    pieces = _CHINESE_SENTENCE_END.split(document.text)
    return float(sum(any(map(str.isalnum, piece)) for piece in pieces))


def _has_sentences(document: Document, profile: Profile, least: float) -> bool:
    """Whether the first sentences are enough, so that the others need not be counted."""
    if document.language == "zh":
        return False
    return sum(1 for _ in islice(_ENGLISH_SENTENCE.finditer(document.text), ceil(least))) >= least


def _is_short(document: Document, profile: Profile, most: float) -> bool:
    """Whether there is no room for more sentences: each has a letter and an end."""
    return (len(document.text) + 1) // 2 <= most


def _characters(document: Document, profile: Profile) -> float:
    return float(len("".join(document.text.split())))


def _mean_word_length(document: Document, profile: Profile) -> float | None:
    words = document.plain_words
    return share(len("".join(words)), len(words))


def _unique_words(document: Document, profile: Profile) -> float | None:
    english = document.language == "en"
    words = document.text.lower().split() if english else [word.lower() for word in document.plain_words]
    return share(len(set(words)), len(words))


@register
class FilterWordCount(PlainWordsFilter):
    """Keeps the rows whose text has neither too few nor too many words.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `word_count_words` (float64). An English word is what stands
    between white space, a Chinese one is jieba's, without punctuation marks. Bounds: 20 to 100000 in both
    languages. Rejected rows have the reason `too_few_words` or `too_many_words`. A blank text has 0 words.
    Raises nothing on text. Chinese words need the extra `text`. Source: open-dataflow's WordNumberFilter.

    Example:
        - {name: long_enough, type: filter_word_count, params: {min: 50}}
    """

    name = "filter_word_count"
    Params = Within
    params: Within
    rules = (at_least("too_few_words", "words", _words), at_most("too_many_words", "words", _words))


@register
class FilterSentenceCount(RuleFilter):
    """Keeps the rows whose text has neither too few nor too many sentences.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `sentence_count_sentences` (float64). An English sentence ends
    with `.`, `!`, `?` or its line and has a letter or digit, so `3.14` ends one. A Chinese one ends with
    。！？!?；;… or its line, or with a full stop before white space. Bounds: 3 to 7500 in both languages.
    Rejected rows have the reason `too_few_sentences` or `too_many_sentences`. Raises nothing on text.
    Source: open-dataflow's SentenceNumberFilter; the Chinese marks are those of `chunk_text`.

    Example:
        - {name: prose, type: filter_sentence_count, params: {min: 5}}
    """

    name = "filter_sentence_count"
    version = "2"
    Params = Within
    params: Within
    rules = (
        at_least("too_few_sentences", "sentences", _sentences, _has_sentences),
        at_most("too_many_sentences", "sentences", _sentences, _is_short),
    )


@register
class FilterCharacterCount(RuleFilter):
    """Keeps the rows whose text has neither too few nor too many characters, white space not counted.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `character_count_characters` (float64). Characters are Unicode
    code points. Bounds: at least 100, in Chinese 50, which say about as much; no most. Rejected rows have
    the reason `too_few_characters` or `too_many_characters`. Raises nothing on text. `filter_length` counts
    white space too, and is faster. Source: open-dataflow's CharNumberFilter; the Chinese bound is our own.

    Example:
        - {name: long_enough, type: filter_character_count, params: {min: 200, max: 100000}}
    """

    name = "filter_character_count"
    Params = Within
    params: Within
    rules = (
        at_least("too_few_characters", "characters", _characters),
        at_most("too_many_characters", "characters", _characters),
    )


@register
class FilterMeanWordLength(PlainWordsFilter):
    """Keeps the rows whose words are of usual length in the mean.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `mean_word_length_characters` (float64). An English word is what
    stands between white space, punctuation included, a Chinese one is jieba's, without punctuation marks.
    Bounds: 3 to 10, in Chinese 1 to 5. Rejected rows have the reason `short_words` or `long_words`. A blank
    text has no mean and stays. Raises nothing on text. Chinese words need the extra `text`. Source: Gopher
    (Rae et al. 2021) as open-dataflow's MeanWordLengthFilter has it; Chinese bounds of FineWeb-2.

    Example:
        - {name: usual_words, type: filter_mean_word_length, params: {max: 12}}
    """

    name = "filter_mean_word_length"
    Params = Within
    params: Within
    rules = (
        at_least("short_words", "characters", _mean_word_length),
        at_most("long_words", "characters", _mean_word_length),
    )


@register
class FilterUniqueWords(PlainWordsFilter):
    """Keeps the rows whose words are not the same few again and again.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `unique_words_share` (float64): different words among all, case not
    counted. An English word is what stands between white space, a Chinese one is jieba's, without
    punctuation marks. Bound: at least 0.1 in both languages. Rejected rows have the reason
    `few_unique_words`. A blank text has no share and stays. Raises nothing on text. Chinese words need the
    extra `text`. Source: open-dataflow's UniqueWordsFilter.

    Example:
        - {name: varied_words, type: filter_unique_words, params: {min: 0.2}}
    """

    name = "filter_unique_words"
    Params = AtLeast
    params: AtLeast
    rules = (at_least("few_unique_words", "share", _unique_words),)
