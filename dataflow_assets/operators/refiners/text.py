"""Cleans one text column: lower case, white space, broken Unicode."""

import re
from collections.abc import Mapping
from typing import Literal

import ftfy
import pyarrow as pa
import pyarrow.compute as pc
from ftfy.badness import BADNESS_RE
from ftfy.fixes import fix_surrogates
from pydantic import Field

from dataflow_assets.batch import column_of, column_type, places_where, values_of
from dataflow_assets.operators.operator import ColumnParams, Outcome, RowErrors, TextMapper
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, texts_by_row

_SPACES = "\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_LINE_ENDS = "\n\v\f\r\u0085\u2028\u2029"
_LONG_BREAK = "\n\n\n"


@register
class Lowercase(TextMapper):
    """Turns a text column into lower case, every letter that Unicode gives a lower-case form.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string).
    One code point becomes one code point (Unicode's simple mapping): unlike `str.lower`, a capital
    dotted I gives `i` without a combining dot, and a final capital sigma gives the sigma of the
    middle. Raises nothing on text.

    Example:
        - {name: lower, type: lowercase, params: {column: text}}
    """

    name = "lowercase"
    releases_gil = True

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts in lower case."""
        return pc.utf8_lower(texts), RowErrors.none()


class _NormalizeWhitespaceParams(ColumnParams):
    han_spaces: Literal["keep", "remove"] = Field(
        "keep",
        description="Spaces between two Han characters or Chinese punctuation marks, as PDF files and speech "
        "recognition leave them.",
    )


@register
class NormalizeWhitespace(TextMapper):
    """Collapses white space: one space between words, at most one blank line, none at the ends.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string).
    A run of spaces, tabs and Unicode spaces (Zs, so also the ideographic space) becomes one space;
    every line end (CR LF, CR, VT, FF, NEL, LS, PS) becomes a newline; spaces at the ends of a line
    go, three or more newlines become two, and both ends of the text are stripped. Newlines stay,
    indentation does not. With `han_spaces: remove` a space between two Chinese characters goes, one
    beside a Latin letter or digit stays. Zero-width characters are no white space and stay: emoji
    need them. Done twice, the second time changes nothing. Raises nothing on text.

    Example:
        - {name: tidy, type: normalize_whitespace}
    """

    name = "normalize_whitespace"
    releases_gil = True
    Params = _NormalizeWhitespaceParams
    params: _NormalizeWhitespaceParams

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts tidied; those that are tidy already are not touched."""
        untidy = pc.match_substring_regex(texts, _UNTIDY)
        tidy = edited_where(texts, untidy, _tidied)
        if self.params.han_spaces == "remove":
            spaced = pc.match_substring_regex(tidy, _HAN_SPACE)
            tidy = edited_where(tidy, spaced, _without_han_spaces)
        return tidy, RowErrors.none()


_UNTIDY = (
    f"[{_SPACES}][{_SPACES}{_LINE_ENDS}]|[{_SPACES.replace(' ', '')}{_LINE_ENDS.replace(chr(10), '')}]"
    f"|\n |{_LONG_BREAK}|^[ \n]|[ \n]$"
)


_CHINESE = "[\\p{Han}\u3001-\u3011\u2018-\u201d\u2026\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
_HAN_SPACE = f"({_CHINESE}) ({_CHINESE})"


def _without_han_spaces(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Twice, because a match takes the character that the next one would begin with."""
    for _ in range(2):
        texts = pc.replace_substring_regex(texts, _HAN_SPACE, r"\1\2")
    return texts


def _tidied(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = pc.replace_substring_regex(texts, f"[{_SPACES}]+", " ")
    texts = pc.replace_substring_regex(texts, f" ?(?:\r\n|[{_LINE_ENDS}]) ?", "\n")
    texts = pc.replace_substring_regex(texts, f"{_LONG_BREAK}+", "\n\n")
    return pc.utf8_trim(texts, " \n")


class _FixUnicodeParams(ColumnParams):
    entities: bool = Field(
        True,
        description="Whether HTML entities are decoded in texts without `<`. False before `strip_html` "
        "with `entities: always`, so that none is decoded twice.",
    )


@register
class FixUnicode(TextMapper):
    """Repairs mojibake, HTML entities, control characters, terminal escapes and lone surrogates.

    Grain: one row in, one row out; order and ids unchanged. Reads `column` (string or JSON text),
    writes it (string). The rule is ftfy's (Speer 2019) with encoding, C1, surrogates, control
    characters, terminal escapes and entities on; width, quotes, ligatures, line breaks and
    normalization off, because they rewrite correct Chinese. A lone surrogate becomes U+FFFD. ftfy
    runs on those texts alone that hold something it could change: the result is the same.
    Raises WrongType for a value that is not text.

    Example:
        - {name: repaired, type: fix_unicode, params: {column: text}}
    """

    name = "fix_unicode"
    Params = _FixUnicodeParams
    params: _FixUnicodeParams

    def identity(self) -> Mapping[str, object]:
        """The version of ftfy, whose rules change between versions."""
        return {"ftfy": ftfy.__version__}

    def edit(self, text: str) -> str:
        """The repaired text."""
        return ftfy.fix_text(text, _ftfy_config(self.params.entities))

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts repaired."""
        broken = _looks_broken(texts, self.params.entities)
        return edited_where(texts, broken, lambda some: texts_by_row(some, self.edit)), RowErrors.none()

    def apply(self, table: pa.Table) -> Outcome:
        """Repairs lone surrogates, which only a JSON column can hold, then everything else."""
        field = table.schema.field(self.params.column)
        if column_type(field) == "json":
            values = [
                fix_surrogates(value) if isinstance(value, str) else value
                for value in values_of(table, field.name)
            ]
            index = table.schema.get_field_index(field.name)
            table = table.set_column(index, field, column_of(values, "json"))
        return super().apply(table)


def _ftfy_config(entities: bool) -> ftfy.TextFixerConfig:
    return ftfy.TextFixerConfig(
        unescape_html="auto" if entities else False,
        remove_terminal_escapes=True,
        fix_encoding=True,
        restore_byte_a0=True,
        replace_lossy_sequences=True,
        decode_inconsistent_utf8=True,
        fix_c1_controls=True,
        fix_latin_ligatures=False,
        fix_character_width=False,
        uncurl_quotes=False,
        fix_line_breaks=False,
        fix_surrogates=True,
        remove_control_chars=True,
        normalization=None,
        explain=False,
    )


_ENTITY = "&#?[0-9A-Za-z]{1,24};"
_CONTROLS = "[\x00-\x08\x0b\x0e-\x1f\x7f]"
_ODD_CONTROLS = "[\u0080-\u009f\u206a-\u206f\ufeff\ufff9-\ufffc]"


def _badness_in_re2() -> str:
    r"""The test of ftfy for mojibake, as an RE2 pattern that finds at least as much.

    RE2 has no verbose flag, other classes `\w` and `\s`, and sees the whole text where ftfy sees
    a line: the two classes are widened and `^` also matches after a newline.
    """
    pattern = re.sub(r"(?m)^\s*#.*$", "", BADNESS_RE.pattern)
    pattern = "".join(part if part[0] == "[" else re.sub(r"\s", "", part) for part in _parts(pattern))
    pattern = pattern.replace(r"\s", "[\\x00-\\x20\u0080-\u00a0\u1680\u2000-\u205f\u3000]")
    return pattern.replace(r"\w", "[^\\x00-\\x20]").replace("|^", "|(?:^|\n)")


def _parts(pattern: str) -> list[str]:
    """The classes in square brackets, and what is between them."""
    return re.findall(r"\[[^\]]*\]|[^\[]+", pattern)


_BADNESS = f"{_ODD_CONTROLS}|{_badness_in_re2()}"


def _looks_broken(texts: pa.ChunkedArray, entities: bool) -> pa.ChunkedArray:
    """Whether ftfy could change a text; true at least wherever it does."""
    ascii_problem = f"{_CONTROLS}|{_ENTITY}" if entities else _CONTROLS
    broken = pc.match_substring_regex(texts, ascii_problem)
    foreign = pc.and_not(pc.invert(pc.string_is_ascii(texts)), broken)
    if not pc.any(foreign).as_py():
        return broken
    positions = places_where(foreign)
    mojibake = positions.filter(pc.match_substring_regex(texts.filter(foreign), _BADNESS))
    marks = broken.to_numpy().copy()
    marks[mojibake.to_numpy()] = True
    return pa.chunked_array([pa.array(marks)])
