"""Values of rows as texts for a page: control characters visible, long ones cut where nothing is to see."""

import json

from dataflow_assets.io.preview import visible

_CONTEXT_CHARS = 120


def as_text(value: object) -> str | None:
    """A value as the text that is shown; null stays null."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)


def legible(text: str) -> str:
    """The text with line ends as they are, and other control characters and direction marks as escapes."""
    return "\n".join(visible(line) for line in text.split("\n"))


def cut(text: str | None, max_chars: int, start: int = 0) -> str | None:
    """At most `max_chars` characters from `start` on, with how many are left out at both ends."""
    if text is None:
        return None
    head = f"(the first {start:,} characters are left out) …" if start else ""
    rest = len(text) - start - max_chars
    tail = f"… ({rest:,} more characters)" if rest > 0 else ""
    return legible(f"{head}{text[start : start + max_chars]}{tail}")


def cut_pair(before: str | None, after: str | None, max_chars: int) -> tuple[str | None, str | None]:
    """Both texts cut alike, so that the first place where they differ is in sight."""
    start = 0
    if before is not None and after is not None and max(len(before), len(after)) > max_chars:
        same = _common_start(before, after)
        start = max(0, same - _CONTEXT_CHARS) if same > max_chars // 2 else 0
    return cut(before, max_chars, start), cut(after, max_chars, start)


def _common_start(first: str, second: str) -> int:
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
