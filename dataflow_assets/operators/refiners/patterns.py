"""Replaces and filters by a regular expression of the user, with one meaning and a time limit.

A pattern means what Python says. RE2 through pyarrow is many times faster and never hangs, but reads
some patterns another way: `re2_pattern` gives its form of a pattern where both agree, and nothing
where they might not.
"""

import re
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import BaseModel, Field, model_validator

from dataflow_assets.errors import PatternTimeout
from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextFilter, TextMapper
from dataflow_assets.operators.registry import register

try:
    from re import _parser as _re_parser  # pyright: ignore[reportAttributeAccessIssue]
except ImportError:  # Python 3.10
    import sre_parse as _re_parser

_MAX_RE2_REPEATS = 1000
_GROUP_REFERENCE = re.compile(r"\\[1-9](?![0-9])")


class _NoRe2Form(Exception):
    """The pattern may mean something else in RE2."""


def re2_pattern(pattern: str, *, groups: bool = False, empty: bool = True) -> str | None:
    r"""The RE2 form of a Python pattern, or None where the two might differ on some text.

    Translated are literals, sets of characters and ranges, `.`, `^`, groups, alternatives and
    repeats. Not: `\w \d \s \b` (ASCII in RE2), `$` (Python also matches before a last newline),
    look-around, back-references, flags. `groups` says that the groups' contents are used, `empty`
    that it makes no difference where a pattern matches nothing: Python and RE2 find other empty
    matches beside a match.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            parsed = _re_parser.parse(pattern)
        if parsed.state.flags & ~re.UNICODE or (not empty and parsed.getwidth()[0] == 0):
            return None
        text = _sequence(parsed, groups)
        pc.match_substring_regex(pa.array([""]), text)
    except (re.error, _NoRe2Form, FutureWarning, OverflowError, RecursionError, pa.ArrowInvalid):
        return None
    return text


def _sequence(nodes: Any, groups: bool) -> str:
    return "".join(_node(str(name), argument, groups) for name, argument in nodes)


def _node(name: str, argument: Any, groups: bool) -> str:
    if name == "LITERAL":
        return _literal(argument)
    if name == "NOT_LITERAL":
        return f"[^{_literal(argument)}]"
    if name == "ANY":
        return "."
    if name == "AT" and str(argument) in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return r"\A"
    if name == "IN":
        return _character_set(argument)
    if name == "BRANCH":
        return f"(?:{'|'.join(_sequence(branch, groups) for branch in argument[1])})"
    if name == "SUBPATTERN":
        return _group(argument, groups)
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeat(name, argument, groups)
    raise _NoRe2Form


def _literal(code_point: int) -> str:
    if 0xD800 <= code_point <= 0xDFFF:
        raise _NoRe2Form
    return f"\\x{{{code_point:x}}}"


def _character_set(members: Sequence[tuple]) -> str:
    parts = []
    for kind, argument in members:
        if str(kind) == "NEGATE":
            parts.append("^")
        elif str(kind) == "LITERAL":
            parts.append(_literal(argument))
        elif str(kind) == "RANGE":
            parts.append(f"{_literal(argument[0])}-{_literal(argument[1])}")
        else:
            raise _NoRe2Form
    return f"[{''.join(parts)}]"


def _group(argument: tuple, groups: bool) -> str:
    number, added_flags, removed_flags, body = argument
    if added_flags or removed_flags:
        raise _NoRe2Form
    return f"({'' if number else '?:'}{_sequence(body, groups)})"


def _repeat(name: str, argument: tuple, groups: bool) -> str:
    least, most, body = argument
    unbounded = most == _re_parser.MAXREPEAT
    if body.getwidth()[0] == 0 or least > _MAX_RE2_REPEATS or (not unbounded and most > _MAX_RE2_REPEATS):
        raise _NoRe2Form
    inner = _sequence(body, groups)
    if groups and re.search(r"\((?!\?)", inner):
        raise _NoRe2Form
    return f"(?:{inner}){{{least},{'' if unbounded else most}}}{'?' if name == 'MIN_REPEAT' else ''}"


class _PatternParams(ColumnParams):
    pattern: str = Field(description="A regular expression, searched anywhere in the text.")
    engine: Literal["auto", "re2", "python"] = Field(
        "auto",
        description="`auto`: Python's meaning, by RE2 where it is the same. `re2`: RE2's syntax and "
        "meaning, never slow. `python`: always the `regex` module.",
    )
    timeout_s: float = Field(1.0, gt=0, description="The most seconds that one row may take (not by RE2).")

    @model_validator(mode="after")
    def _compiles(self) -> "_PatternParams":
        check_pattern(self.pattern, self.engine)
        return self


def check_pattern(pattern: str, engine: str) -> None:
    """Raises ValueError, with the place and the reason, for a pattern that does not compile."""
    try:
        if engine == "re2":
            pc.match_substring_regex(pa.array([""]), pattern)
        else:
            regex.compile(pattern)
    except (regex.error, pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise ValueError(f"the pattern {pattern!r} is no regular expression: {error}") from error


def timeout_error(pattern: str, timeout_s: float) -> PatternTimeout:
    """What a row fails with on which a pattern took too long."""
    return PatternTimeout(
        f"pattern timeout: {pattern!r} did not end within {timeout_s:g} s on this row; write it without "
        "nested repeats, raise `timeout_s`, or use `engine: re2`"
    )


class _RegexReplaceParams(_PatternParams):
    replacement: str = Field("", description="What stands in its place; `\\1` is the first group.")

    @model_validator(mode="after")
    def _replacement_fits(self) -> "_RegexReplaceParams":
        try:
            if self.engine == "re2":
                pc.replace_substring_regex(pa.array([""]), self.pattern, self.replacement)
            else:
                check_template(regex.compile(self.pattern), self.replacement)
        except (regex.error, IndexError, pa.ArrowInvalid, UnicodeEncodeError) as error:
            reason = str(error)
            raise ValueError(
                f"the replacement {self.replacement!r} does not fit the pattern: {reason}"
            ) from error
        return self


def check_template(pattern: "regex.Pattern[str]", replacement: str) -> None:
    """Raises regex.error or IndexError for a template with an unknown group or escape.

    `regex` reads a template at the first match only, so a pattern with the same groups matches here.
    """
    names = {number: f"?P<{name}>" for name, number in pattern.groupindex.items()}
    stand_in = "".join(f"({names.get(number, '')})" for number in range(1, pattern.groups + 1))
    regex.sub(stand_in, replacement, "")


@register
class RegexReplace(TextMapper):
    r"""Replaces every match of a regular expression in a text column.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string).
    Pattern and replacement mean what they mean to Python's `re.sub` (syntax: the `regex` module, so
    `\p{Han}` works), unless `engine` is `re2`. Raises PatternTimeout for a row on which the pattern
    takes longer than `timeout_s`; the other rows go on.

    Example:
        - {name: masked, type: regex_replace, params: {pattern: "[0-9]{4,}", replacement: "<number>"}}
    """

    name = "regex_replace"
    Params = _RegexReplaceParams
    params: _RegexReplaceParams

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        self.releases_gil = self._re2 is not None

    @cached_property
    def _re2(self) -> str | None:
        params = self.params
        if params.engine == "re2":
            return params.pattern
        rest = _GROUP_REFERENCE.sub("", params.replacement)
        if params.engine == "python" or "\\" in rest:
            return None
        return re2_pattern(params.pattern, groups=rest != params.replacement, empty=False)

    @cached_property
    def _compiled(self) -> "regex.Pattern[str]":
        return regex.compile(self.params.pattern)

    def edit(self, text: str) -> str:
        """The text with every match replaced, by the `regex` module."""
        try:
            return self._compiled.sub(self.params.replacement, text, timeout=self.params.timeout_s)
        except TimeoutError:
            raise timeout_error(self.params.pattern, self.params.timeout_s) from None

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts with every match replaced."""
        if self._re2 is None:
            return super().edit_column(texts)
        return pc.replace_substring_regex(texts, self._re2, self.params.replacement), RowErrors.none()


class _FilterRegexParams(_PatternParams):
    keep: Literal["matching", "not_matching"] = Field(
        "matching", description="Which rows go on: those with a match, or those without."
    )


@register
class FilterRegex(TextFilter):
    """Keeps the rows whose text matches a regular expression, or those whose text does not.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string). A
    match anywhere counts; `^` and `$` tie it to the ends. The pattern means what it means to
    Python's `re.search` (syntax: the `regex` module), unless `engine` is `re2`. Rejected rows have
    the reason `pattern_not_matched` or, with `keep: not_matching`, `pattern_matched`. Raises
    PatternTimeout for a row on which the pattern takes longer than `timeout_s`.

    Example:
        - {name: with_digits, type: filter_regex, params: {pattern: "[0-9]", keep: matching}}
    """

    name = "filter_regex"
    Params = _FilterRegexParams
    params: _FilterRegexParams

    def __init__(self, params: BaseModel | None = None) -> None:
        super().__init__(params)
        self.releases_gil = self._re2 is not None

    @cached_property
    def _re2(self) -> str | None:
        if self.params.engine == "re2":
            return self.params.pattern
        return None if self.params.engine == "python" else re2_pattern(self.params.pattern)

    @cached_property
    def _compiled(self) -> "regex.Pattern[str]":
        return regex.compile(self.params.pattern)

    @property
    def _reason(self) -> str:
        return "pattern_not_matched" if self.params.keep == "matching" else "pattern_matched"

    def reason(self, text: str) -> str | None:
        """The reason to drop this text, by the `regex` module."""
        try:
            found = self._compiled.search(text, timeout=self.params.timeout_s) is not None
        except TimeoutError:
            raise timeout_error(self.params.pattern, self.params.timeout_s) from None
        return None if found == (self.params.keep == "matching") else self._reason

    def reasons(self, texts: pa.ChunkedArray) -> tuple[pa.Array | pa.ChunkedArray, RowErrors]:
        """The reason to drop each text, or null."""
        if self._re2 is None:
            return super().reasons(texts)
        found = pc.match_substring_regex(texts, self._re2)
        dropped = pc.invert(found) if self.params.keep == "matching" else found
        reason = pa.scalar(self._reason, pa.large_string())
        return pc.if_else(dropped, reason, pa.scalar(None, pa.large_string())), RowErrors.none()
