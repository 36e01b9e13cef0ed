"""C4's rules: lines that are taken out of a text, and texts that are dropped."""

import re
from typing import NamedTuple

import pyarrow as pa
from pydantic import BaseModel, Field

from dataflow_assets.batch import Schema, with_column
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import (
    Miss,
    Misses,
    Phrase,
    PlacedDocuments,
    Rule,
    RuleFilter,
    RuleParams,
    Threshold,
    threshold_field,
)
from dataflow_assets.operators.operator import RowErrors
from dataflow_assets.operators.registry import register
from dataflow_assets.text.document import Document
from dataflow_assets.text.english import english_tokenizer

_CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
_LOREM_IPSUM = "lorem ipsum"


class _Reading(NamedTuple):
    """What the rules on lines leave of a text, and the reasons to drop it, line after line."""

    lines: list[str]
    reasons: list[str]


def _read(document: Document, profile: Profile) -> _Reading:
    """Goes through the lines: long words, citations, last mark, words, phrases, in this order."""
    longest, fewest = profile.number("max_word_chars"), profile.number("min_line_words")
    marks = profile.strings("terminal_marks")
    phrases, policies = profile.strings("line_phrases"), profile.strings("policy_phrases")
    lines: list[str] = []
    reasons: list[str] = []
    for raw in document.lines:
        line = raw.strip()
        words = line.split()
        if longest is not None and len(line) > longest and any(len(word) > longest for word in words):
            continue
        if profile.number("remove_citations") and "[" in line:
            line = _CITATION.sub("", line)
        if marks and (not line.endswith(marks) or line.endswith("...")):
            continue
        if fewest is not None and len(words) < fewest:
            continue
        lower = line.lower()
        if _LOREM_IPSUM in lower:
            reasons.append("lorem_ipsum")
        if any(phrase in lower for phrase in phrases):
            continue
        if "{" in line:
            reasons.append("curly_bracket")
        if not any(phrase in lower for phrase in policies):
            lines.append(line)
    return _Reading(lines, reasons)


def _reading(document: Document, profile: Profile) -> _Reading | None:
    """The reading of a text, made once; None in a language without rules."""
    return document.once("c4", lambda: _read(document, profile)) if profile.settings else None


def _lorem_ipsum(document: Document, profile: Profile) -> float | None:
    reading = _reading(document, profile)
    return reading and float(reading.reasons.count("lorem_ipsum"))


def _curly_brackets(document: Document, profile: Profile) -> float | None:
    reading = _reading(document, profile)
    return reading and float(reading.reasons.count("curly_bracket"))


def _sentences(document: Document, profile: Profile) -> float | None:
    reading = _reading(document, profile)
    return reading and float(sum(map(english_tokenizer().count_sentences, reading.lines)))


def _lines_are_enough(document: Document, profile: Profile, threshold: float) -> bool:
    """Whether every line needs only to be one sentence."""
    reading = _reading(document, profile)
    return reading is None or len(reading.lines) >= threshold


class _C4Params(RuleParams):
    max_word_chars: Threshold = threshold_field("A line with a longer word is taken out.")
    terminal_marks: list[Phrase] | None = Field(
        None,
        description="A line that ends in none of these, or in `...`, is taken out; `[]` switches it off. "
        "Default: of the profile.",
    )
    min_line_words: Threshold = threshold_field("A line of fewer words between white space is taken out.")
    line_phrases: list[Phrase] | None = Field(
        None, description="A line with one of these, in lower case, is taken out. Default: of the profile."
    )
    policy_phrases: list[Phrase] | None = Field(
        None, description="The same, after the look for curly brackets. Default: of the profile."
    )
    remove_citations: bool | None = Field(
        None,
        description="Whether `[1]`, `[edit]` and `[citation needed]` are removed. Default: of the profile.",
    )
    max_lorem_ipsum: Threshold = threshold_field("The most lines with `lorem ipsum`.")
    max_curly_brackets: Threshold = threshold_field("The most lines with `{`.")
    min_sentences: Threshold = threshold_field("The fewest sentences in the lines that are left.")


@register
class FilterC4(RuleFilter):
    """Takes lines that are no prose out of English texts and drops texts by C4's rules, as datatrove does.

    Grain: one row in, at most one out; order and ids unchanged. Reads and writes `column` (string).
    Lines are those of `str.splitlines`. A line is taken out that has a word of more than 1,000
    characters, ends in no terminal mark, has under 3 words, has `javascript` or a phrase of policies;
    citations are removed; what is left is joined by newlines and stripped. A row is dropped with the
    reason `lorem_ipsum` or `curly_bracket` for the first line with one, or `too_few_sentences`, and
    keeps its text in `_rejected`. FineWeb uses the rules with `terminal_marks: []`. They are for
    English: with `language: auto` a text with a Han share of at least .2 stays as it is, and
    `language: zh` is refused. `mode: annotate` leaves the text as it is. Raises nothing on text.
    Source: Raffel et al. 2020 and its code.

    Example:
        - {name: prose, type: filter_c4, params: {terminal_marks: []}}
    """

    name = "filter_c4"
    Params = _C4Params
    params: _C4Params
    rules = (
        Rule("lorem_ipsum", "lorem_ipsum", _lorem_ipsum, max="max_lorem_ipsum"),
        Rule("curly_bracket", "curly_brackets", _curly_brackets, max="max_curly_brackets"),
        Rule(
            "too_few_sentences", "sentences", _sentences, min="min_sentences", surely_kept=_lines_are_enough
        ),
    )

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        if self.params.language == "zh":
            raise ConfigError(
                "operator 'filter_c4' has no rules for 'zh': C4's are for English text; take the step out, "
                "or give `language: auto`, which hands Chinese texts on as they are"
            )

    def writes(self) -> Schema:
        """The text column, or the measures in `mode: annotate`."""
        return super().writes() if self.params.mode == "annotate" else {self.params.column: "string"}

    def judged(self, table: pa.Table, documents: PlacedDocuments) -> tuple[pa.Table, Misses, RowErrors]:
        """The table with the texts edited, the rows that are dropped, and those that failed."""
        documents = list(documents)
        table, misses, errors = super().judged(table, documents)
        texts: list[str | None] = [None] * len(table)
        failed = set(errors.positions)
        for place, document in documents:
            reading = None if place in failed else _reading(document, self.profile(document.language))
            texts[place] = document.text if reading is None else "\n".join(reading.lines).strip()
        edited = with_column(table, self.params.column, "string", pa.array(texts, pa.large_string()))
        return edited, misses, errors

    def miss(self, document: Document) -> Miss | None:
        """The reason of the first line that drops the text, then too few sentences."""
        profile = self.profile(document.language)
        reading = _reading(document, profile)
        by_reason = {rule.reason: rule for rule in self.rules}
        for reason in dict.fromkeys(reading.reasons) if reading else ():
            if (miss := by_reason[reason].miss(document, profile)) is not None:
                return miss
        return by_reason["too_few_sentences"].miss(document, profile)
