"""FineWeb's rules on the lines of a text."""

from typing import Annotated

from pydantic import Field

from dataflow_assets.operators.filters.gopher_repetition import duplicates
from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import Rule, RuleFilter, RuleParams, Threshold, threshold_field
from dataflow_assets.operators.registry import register
from dataflow_assets.text.characters import TERMINAL_MARKS
from dataflow_assets.text.document import Document

_ALL_MARKS = frozenset(TERMINAL_MARKS)


def _lines(document: Document, profile: Profile) -> list[str]:
    """The lines that are not blank, or the sentences of a long text with hardly a line break."""
    least_chars, breaks = (
        profile.number("sentences_from_chars"),
        profile.number("sentences_below_newlines"),
    )
    if least_chars is None or breaks is None or len(document.text) < least_chars:
        return document.written_lines
    return document.sentences if document.text.count("\n") < breaks else document.written_lines


def _written_lines(document: Document, profile: Profile) -> float:
    return float(len(document.written_lines))


def _terminal_lines(document: Document, profile: Profile) -> float | None:
    marks = profile.strings("terminal_marks") or _ALL_MARKS
    lines = _lines(document, profile)
    return sum(line[-1] in marks for line in lines) / len(lines) if lines else None


def _short_lines(document: Document, profile: Profile) -> float | None:
    lines, most = _lines(document, profile), profile.number("short_line_chars") or 0
    return sum(len(line) <= most for line in lines) / len(lines) if lines else None


def _duplicate_line_chars(document: Document, profile: Profile) -> float | None:
    lines = _lines(document, profile)
    return duplicates(lines)[1] / (len(document.text) - document.text.count("\n")) if lines else None


def _newlines_per_word(document: Document, profile: Profile) -> float | None:
    return document.text.count("\n") / len(document.words) if len(document.words) else None


def _few_newlines(document: Document, profile: Profile, threshold: float) -> bool:
    """Whether the newlines are few enough even for the fewest words that the text can have."""
    newlines = document.text.count("\n")
    return newlines == 0 or newlines / max(document.fewest_words, 1) <= threshold


class _FinewebParams(RuleParams):
    min_written_lines: Threshold = threshold_field("The fewest lines that are not blank.")
    min_terminal_lines: Threshold = threshold_field("The least share of lines that end in a terminal mark.")
    terminal_marks: list[Annotated[str, Field(min_length=1, max_length=1)]] | None = Field(
        None, description="The terminal marks, one character each. Default: of the profile."
    )
    max_short_lines: Threshold = threshold_field("The largest share of short lines.")
    short_line_chars: float | None = Field(
        None, ge=0, description="The most characters of a short line. Default: of the profile."
    )
    max_duplicate_line_chars: Threshold = threshold_field(
        "The largest share of characters of repeated lines."
    )
    max_newlines_per_word: Threshold = threshold_field("The most newlines per word or mark.")
    sentences_from_chars: Threshold = threshold_field(
        "A text of at least so many characters and few newlines is judged by its sentences, not its lines."
    )
    sentences_below_newlines: Threshold = threshold_field("Fewer newlines than these are few.")


@register
class FilterFineweb(RuleFilter):
    r"""Keeps the rows whose lines are those of prose, by FineWeb's rules, with datatrove's verdicts.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Lines are the pieces between `\n` that are not blank. Rules and reasons in their order: no line
    (`empty`), lines that end in a terminal mark (`line_punct_ratio`), short lines
    (`short_line_ratio`), characters of repeated lines (`char_dup_ratio`), newlines per word
    (`list_ratio`). Chinese texts of more than 1,000 characters with under 3 newlines are judged by
    their sentences; `sentences_from_chars: off` gives datatrove's verdict there too. Rejected rows
    have `reject_value` and `reject_threshold` too. Raises nothing on text. Source: Penedo et al.
    2024; Chinese thresholds of FineWeb-2 (cmn_Hani).

    Example:
        - {name: prose, type: filter_fineweb, params: {max_short_lines: 0.8}}
    """

    name = "filter_fineweb"
    needs_words = True
    Params = _FinewebParams
    params: _FinewebParams
    rules = (
        Rule("empty", "written_lines", _written_lines, min="min_written_lines"),
        Rule("line_punct_ratio", "terminal_lines", _terminal_lines, min="min_terminal_lines"),
        Rule("short_line_ratio", "short_lines", _short_lines, max="max_short_lines"),
        Rule("char_dup_ratio", "duplicate_line_chars", _duplicate_line_chars, max="max_duplicate_line_chars"),
        Rule(
            "list_ratio",
            "newlines_per_word",
            _newlines_per_word,
            max="max_newlines_per_word",
            surely_kept=_few_newlines,
        ),
    )
