"""Filters by characters and phrases that prose does not have."""

import re
from typing import Literal

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
from dataflow_assets.text.characters import ELLIPSES
from dataflow_assets.text.document import Document
from dataflow_assets.text.tokens import characters_or_runs

_WORD_OR_MARKS = re.compile(r"\w+|[^\w\s]+")
_ENTITY_NAMES = "nbsp|lt|gt|amp|quot|apos|hellip|ndash|mdash|lsquo|rsquo|ldquo|rdquo"
_ENTITY = re.compile(
    rf"[&＆](?:(?:{_ENTITY_NAMES})(?:[;；]|(?![A-Za-z0-9_=]))|#(?:[0-9]{{1,7}}|[xX][0-9A-Fa-f]{{1,6}})[;；])"
)
_ENGLISH_PAUSE = re.compile(r"[–.!?,;•/|…\n]")
_ANY_PAUSE = re.compile(r"[–.!?,;•/|…\n。，、！？；：—·「」『』“”‘’《》（）()]")
# What a broken conversion leaves behind: escapes without their backslash, a missing glyph.
_LEFTOVER = re.compile(
    r"u200e|&#247;|\? :|[\ufffd□]|\{/U\}"
    r"|U\+26[0-F][0-D]|U\+273[34]|U\+1F[3-6][0-4][0-F]|U\+1F6[8-F][0-F]"
)
# Every leftover has one of these.
_LEFTOVER_SIGNS = ("u200e", "&#247;", "? :", "\ufffd", "□", "{/U}", "U+")
_LOREM_IPSUM = re.compile("lorem ipsum", re.IGNORECASE)


def _written(document: Document, profile: Profile) -> float:
    return float(len(document.text.strip()))


def _colon_end(document: Document, profile: Profile) -> float:
    return float(document.text.rstrip().endswith((":", "：")))


def _symbols(text: str) -> int:
    return text.count("#") + sum(map(text.count, ELLIPSES))


def _symbols_per_word(document: Document, profile: Profile) -> float | None:
    if document.language == "en":
        return share(_symbols(document.text), len(_WORD_OR_MARKS.findall(document.text)))
    return share(_symbols(document.text), len(document.words))


def _has_few_symbols(document: Document, profile: Profile, most: float) -> bool:
    """Whether they are few for the words between white space, of which there are not more."""
    return document.language == "en" and _symbols(document.text) <= most * len(document.plain_words)


def _html_entities(document: Document, profile: Profile) -> float:
    text = document.text
    return float(len(_ENTITY.findall(text))) if "&" in text or "＆" in text else 0.0


def _longest_run(document: Document, profile: Profile) -> float:
    english = document.language == "en"
    longest = 0
    for run in (_ENGLISH_PAUSE if english else _ANY_PAUSE).split(document.text):
        most = (len(run) + 1) // 2 if english else len(run)
        if most > longest:
            longest = max(longest, len(run.split() if english else characters_or_runs(run)))
    return float(longest)


def _special_characters(document: Document, profile: Profile) -> float:
    if not any(sign in document.text for sign in _LEFTOVER_SIGNS):
        return 0.0
    return float(len(_LEFTOVER.findall(document.text)))


def _watermarks(document: Document, profile: Profile) -> float:
    return float(sum(map(document.text.count, profile.strings("watermarks"))))


def _curly_brackets(document: Document, profile: Profile) -> float | None:
    return share(sum(map(document.text.count, "{}｛｝")), len(document.text))


def _lorem_ipsum(document: Document, profile: Profile) -> float | None:
    return share(len(_LOREM_IPSUM.findall(document.text)), len(document.text))


class _NullContentParams(AtLeast):
    on_null: Literal["fail", "keep", "reject"] = Field(
        "reject", description="What becomes of a row without text: `fail`, `keep` or `reject`."
    )


@register
class FilterNullContent(RuleFilter):
    """Keeps the rows that have a text with more than white space.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` adds `null_content_characters` (float64), counted without white space at both ends.
    Bound: at least 1 in both languages. Rejected rows have the reason `blank`, or, where there is no text at
    all, `missing_text` (other operators fail such a row; here `on_null: fail` does). Raises nothing on text.
    Source: open-dataflow's ContentNullFilter.

    Example:
        - {name: with_text, type: filter_null_content}
    """

    name = "filter_null_content"
    Params = _NullContentParams
    params: _NullContentParams
    rules = (at_least("blank", "characters", _written),)


@register
class FilterColonEnd(RuleFilter):
    """Keeps the rows whose text does not end in a colon, as cut texts and headings do.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `colon_end_colons` (float64), 1 or 0. White space at the end counts
    not; `:` and `：` are colons. Bound: at most 0 in both languages. Rejected rows have the reason
    `colon_end`. Raises nothing on text. Source: open-dataflow's ColonEndFilter, which looks at the last
    character alone.

    Example:
        - {name: not_cut, type: filter_colon_end}
    """

    name = "filter_colon_end"
    Params = AtMost
    params: AtMost
    rules = (at_most("colon_end", "colons", _colon_end),)


@register
class FilterSymbolsPerWord(PlainWordsFilter):
    """Keeps the rows that have few hashes and ellipses for their words.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `symbols_per_word_ratio` (float64): how often `#`, `...` and `…`
    stand in the text, divided by its words and punctuation marks (runs of letters and digits and runs of
    marks in English, jieba's in Chinese). Bound: at most 0.4 in both languages. Rejected rows have the reason
    `symbols_per_word`. A blank text has no ratio and stays. Raises nothing on text. Chinese words need the
    extra `text`. Source: Gopher (Rae et al. 2021) as open-dataflow's SymbolWordRatioFilter has it.

    Example:
        - {name: few_symbols, type: filter_symbols_per_word, params: {max: 0.1}}
    """

    name = "filter_symbols_per_word"
    Params = AtMost
    params: AtMost
    rules = (at_most("symbols_per_word", "ratio", _symbols_per_word, _has_few_symbols),)


@register
class FilterHtmlEntities(RuleFilter):
    """Keeps the rows whose text has no HTML entities left.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `html_entities_count` (float64): the numbered ones and nbsp, lt, gt,
    amp, quot, apos, hellip, ndash, mdash, lsquo, rsquo, ldquo, rdquo, with `&` or `＆`. Without `;` a name
    counts where it is whole: `&lt` does, `?a=1&lt=2` and `R&amplifier` do not. Bound: at most 0 in both
    languages. Rejected rows have the reason `html_entities`. Raises nothing on text. Source: open-dataflow's
    HtmlEntityFilter, which counts names inside longer ones too, and no numbers.

    Example:
        - {name: no_entities, type: filter_html_entities, params: {max: 2}}
    """

    name = "filter_html_entities"
    Params = AtMost
    params: AtMost
    rules = (at_most("html_entities", "count", _html_entities),)


@register
class FilterNoPunctuation(RuleFilter):
    """Keeps the rows that have punctuation in usual distances.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `no_punctuation_longest_run` (float64): the most words between two
    punctuation marks or line breaks. English: words are between white space, marks are – . ! ? , ; • / | …
    Chinese: a Chinese character is a word, and all Chinese marks, brackets and quotes count. Bound: at most
    112, in Chinese 200. Rejected rows have the reason `no_punctuation`. Raises nothing on text. Source:
    open-dataflow's NoPuncFilter; the Chinese bound is our own.

    Example:
        - {name: punctuated, type: filter_no_punctuation, params: {max: 80}}
    """

    name = "filter_no_punctuation"
    Params = AtMost
    params: AtMost
    rules = (at_most("no_punctuation", "longest_run", _longest_run),)


@register
class FilterSpecialCharacters(RuleFilter):
    """Keeps the rows without what broken conversions leave behind.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `special_characters_count` (float64): U+FFFD, □, `u200e`, `&#247;`,
    `? :`, `{/U}` and code points of emoji written out, e.g. `U+1F600`. Bound: at most 0 in both languages.
    Rejected rows have the reason `special_characters`. Raises nothing on text. Source: open-dataflow's
    SpecialCharacterFilter.

    Example:
        - {name: unbroken, type: filter_special_characters}
    """

    name = "filter_special_characters"
    Params = AtMost
    params: AtMost
    rules = (at_most("special_characters", "count", _special_characters),)


class _WatermarkParams(AtMost):
    watermarks: list[Phrase] | None = Field(
        None, description="The phrases, in their case. Default: of the profile."
    )


@register
class FilterWatermark(RuleFilter):
    """Keeps the rows without phrases of owners and watermarks.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `watermark_count` (float64): how often one of `watermarks` stands in
    the text, case counted; by default Copyright, Watermark, Confidential, in Chinese also 版权所有, 水印,
    未经授权. Bound: at most 0 in both languages. Rejected rows have the reason `watermark`. Raises nothing on
    text. Source: open-dataflow's WatermarkFilter; the Chinese phrases are our own.

    Example:
        - {name: free, type: filter_watermark, params: {watermarks: [Copyright, All rights reserved]}}
    """

    name = "filter_watermark"
    Params = _WatermarkParams
    params: _WatermarkParams
    rules = (at_most("watermark", "count", _watermarks),)


@register
class FilterCurlyBrackets(RuleFilter):
    """Keeps the rows with few curly brackets: prose, not program code or templates.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `curly_brackets_share` (float64): `{`, `}`, `｛`, `｝` among all
    characters. Bound: at most 0.025 in both languages. Rejected rows have the reason `curly_brackets`. An
    empty text has no share and stays. Raises nothing on text. Source: C4 (Raffel et al. 2020) as
    open-dataflow's CurlyBracketFilter has it.

    Example:
        - {name: no_code, type: filter_curly_brackets, params: {max: 0}}
    """

    name = "filter_curly_brackets"
    Params = AtMost
    params: AtMost
    rules = (at_most("curly_brackets", "share", _curly_brackets),)


@register
class FilterLoremIpsum(RuleFilter):
    """Keeps the rows without the dummy text `lorem ipsum`.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `lorem_ipsum_share` (float64): how often it stands in the text in any
    case, divided by the characters. Bound: at most 3e-08 in both languages, so once is too often in any text
    below 33 million characters. Rejected rows have the reason `lorem_ipsum`. An empty text has no share and
    stays. Raises nothing on text. Source: C4 (Raffel et al. 2020) as open-dataflow's LoremIpsumFilter has it.

    Example:
        - {name: no_dummy, type: filter_lorem_ipsum}
    """

    name = "filter_lorem_ipsum"
    Params = AtMost
    params: AtMost
    rules = (at_most("lorem_ipsum", "share", _lorem_ipsum),)
