"""A few rows as a Markdown table in which the data stays data."""

import json
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from dataflow_assets.batch import rows_of

_MAX_CELL_CHARS = 160
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_AUTOMATIC_LINK = re.compile(r"\b(?:https?|ftp|mailto|xmpp):|\bwww(?=\.)|@", re.IGNORECASE)
_AUTOMATIC_SIGNS = frozenset(":@wW")
_UNBROKEN_CHARS = 40
_UNBROKEN = re.compile(rf"\S{{{_UNBROKEN_CHARS}}}(?=\S)")
_BREAK = "\u200b"
_ESCAPES = {ord(sign): f"\\{sign}" for sign in r"\`*_{}[]()#+!|&~$-"} | {ord("<"): "&lt;", ord(">"): "&gt;"}


def visible(text: str) -> str:
    """The text with control and escape characters, line ends and direction marks shown as escapes."""
    escaped = _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
    return escaped.encode("utf-8", "backslashreplace").decode()


def shown_value(value: object, max_chars: int = _MAX_CELL_CHARS) -> str:
    """A value on one line, cut with the number of characters that are left out."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cut = text if len(text) <= max_chars else f"{text[:max_chars]}… (+{len(text) - max_chars})"
    return visible(cut)


def markdown_table(table: pa.Table) -> str:
    """All rows of a small table; markup in the data is escaped."""
    return markdown_rows(table.column_names, [list(row.values()) for row in rows_of(table)])


def markdown_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """These rows below a header; markup in all cells is escaped."""
    lines = [
        list(map(markdown_cell, header)),
        ["---"] * len(header),
        *(list(map(markdown_cell, row)) for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_cell(value: object) -> str:
    """A value as one cell of a Markdown table, with its markup escaped.

    Where a page would make a link of an address by itself, or could not break a long line, an
    invisible space (U+200B) is put in.
    """
    text = shown_value(value)
    if len(text) > _UNBROKEN_CHARS:
        text = _UNBROKEN.sub(f"\\g<0>{_BREAK}", text)
    if not _AUTOMATIC_SIGNS.isdisjoint(text):
        text = _AUTOMATIC_LINK.sub(f"\\g<0>{_BREAK}", text)
    return text.translate(_ESCAPES)
