"""Regular expressions of the user, with one meaning and a time limit.

A pattern means what Python says. RE2 through pyarrow is many times faster and never hangs, but reads
some patterns another way: `re2_pattern` gives its form of a pattern where both agree, and nothing
where they might not.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import Field, model_validator

from dataflow_assets.errors import PatternTimeout
from dataflow_assets.operators.operator import ColumnParams

try:
    from re import _parser as _re_parser  # pyright: ignore[reportAttributeAccessIssue]
except ImportError:  # Python 3.10
    import sre_parse as _re_parser

_MAX_RE2_REPEATS = 1000
_ESCAPE = re.compile(r"\\.", re.DOTALL)
# Plain characters to `re`, not to `regex`: fuzzy matching (`{e<=1}`), POSIX classes (`[a[:digit:]]`).
_REGEX_ALONE = re.compile(r"\{(?!\d*,?\d*\})|\[:")


class _NoRe2Form(Exception):
    """The pattern may mean something else in RE2."""


def re2_pattern(pattern: str, *, groups: bool = False, empty: bool = True) -> str | None:
    r"""The RE2 form of a Python pattern, or None where the two might differ on some text.

    Translated are literals, sets of characters and ranges, `.`, `^`, groups, alternatives and
    repeats. Not: `\w \d \s \b` (ASCII in RE2), `$` (Python also matches before a last newline),
    look-around, back-references, flags, what only the `regex` module knows. `groups` says that the
    groups' contents are used, `empty` that it makes no difference where a pattern matches nothing:
    Python and RE2 find other empty matches beside a match.
    """
    if _REGEX_ALONE.search(_ESCAPE.sub("", pattern)):
        return None
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


class PatternParams(ColumnParams):
    """Parameters of an operator with a regular expression on one text column."""

    pattern: str = Field(description="A regular expression, searched anywhere in the text.")
    engine: Literal["auto", "re2", "python"] = Field(
        "auto",
        description="`auto`: Python's meaning, by RE2 where it is the same. `re2`: RE2's syntax and "
        "meaning, never slow. `python`: always the `regex` module.",
    )
    timeout_s: float = Field(1.0, gt=0, description="The most seconds that one row may take (not by RE2).")

    @model_validator(mode="after")
    def _compiles(self) -> "PatternParams":
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


def timeout_error(pattern: str, timeout_s: float, *, has_engine: bool = False) -> PatternTimeout:
    """What a row fails with on which a pattern took too long; `has_engine`: RE2 can be asked for."""
    hint = "raise `timeout_s`, or use `engine: re2`" if has_engine else "or raise `timeout_s`"
    return PatternTimeout(
        f"pattern timeout: {pattern!r} did not end within {timeout_s:g} s on this row; write it without "
        f"nested repeats, {hint}"
    )


def check_template(pattern: "regex.Pattern[str]", replacement: str) -> None:
    """Raises regex.error or IndexError for a template with an unknown group or escape.

    `regex` reads a template at the first match only, so a pattern with the same groups matches here.
    """
    names = {number: f"?P<{name}>" for name, number in pattern.groupindex.items()}
    stand_in = "".join(f"({names.get(number, '')})" for number in range(1, pattern.groups + 1))
    regex.sub(stand_in, replacement, "")
