"""A few rows as a Markdown table in which the data stays data."""

import json
import re

import pyarrow as pa

from dataflow_assets.batch import rows_of

_MAX_CELL_CHARS = 160
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|<>&~$-])")


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
    rows = [list(map(markdown_cell, row.values())) for row in rows_of(table)]
    header = [markdown_cell(name) for name in table.column_names]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_cell(value: object) -> str:
    """A value as text in Markdown that means nothing there."""
    return _MARKUP.sub(r"\\\1", shown_value(value)).replace("\\<", "&lt;").replace("\\>", "&gt;")
