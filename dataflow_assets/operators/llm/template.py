"""A prompt with named columns; what a row says never becomes syntax."""

import re
from collections.abc import Mapping

from dataflow_assets.batch import json_text
from dataflow_assets.errors import MissingValue, WrongType

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}\n\"]+)\}|[{}]")
_MAX_SHOWN_CHARS = 40


class Template:
    """A text with `{column}` fields; `{{` and `}}` are braces.

    It is taken apart once, when it is made, and filled in one pass: braces, `${}` or role markers in
    a row's text arrive as they are. Raises ValueError, with the line, for a brace that is neither.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces: list[tuple[str, str | None]] = []
        literal, position = "", 0
        for token in _TOKEN.finditer(text):
            literal += text[position : token.start()]
            position = token.end()
            if token.group(1) is not None:
                self._pieces.append((literal, token.group(1)))
                literal = ""
            elif len(token.group()) == 2:
                literal += token.group()[0]
            else:
                raise ValueError(self._bad_brace(token.start()))
        self._pieces.append((literal + text[position:], None))

    def _bad_brace(self, start: int) -> str:
        line = self.text.count("\n", 0, start) + 1
        found = self.text[start : start + _MAX_SHOWN_CHARS].partition("\n")[0]
        return (
            f"line {line} has a brace that belongs to no column, at {found!r}; "
            "write {name} for a column, {{ and }} for the braces themselves"
        )

    def columns(self) -> list[str]:
        """The names in it, each once, in order."""
        return list(dict.fromkeys(name for _, name in self._pieces if name is not None))

    def literals(self) -> list[str]:
        """The fixed text before, between and after the columns."""
        return [literal for literal, _ in self._pieces]

    def filled(self, row: Mapping[str, object]) -> str:
        """The text with the row's values; what is not text as canonical JSON.

        Raises MissingValue for a column that is null, WrongType for a text that is no Unicode.
        """
        parts: list[str] = []
        for literal, name in self._pieces:
            parts.append(literal)
            if name is not None:
                parts.append(text_of(row, name))
        return "".join(parts)


def text_of(row: Mapping[str, object], column: str) -> str:
    """A row's value as text: text as it is, anything else as canonical JSON.

    Raises MissingValue for null, WrongType for a text with a lone surrogate.
    """
    value = row.get(column)
    if value is None:
        raise MissingValue(f"missing {column}: the row has no value in column {column!r}")
    if not isinstance(value, str):
        return json_text(value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise WrongType(
            f"wrong type: column {column!r} holds a lone surrogate at character {error.start}, "
            "which is no text; `fix_unicode` repairs it"
        ) from None
    return value


def written_text_of(row: Mapping[str, object], column: str) -> str:
    """The same, of a column that must not be blank: a call about nothing is not worth its price."""
    text = text_of(row, column)
    if not text.strip():
        raise MissingValue(f"missing {column}: the text of the row in column {column!r} is blank")
    return text
