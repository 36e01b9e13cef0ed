"""Functions of rows for the tests of `trace` and the report."""

from collections.abc import Mapping


def fails_where_told(row: Mapping[str, object]) -> dict[str, object]:
    """Raises with the row's text in the message where `fail` is true; else adds `seen`."""
    if row.get("fail"):
        raise ValueError(f"cannot do {row['text']}")
    return {"seen": True}


def shouted(row: Mapping[str, object]) -> dict[str, object]:
    """Changes the text in its middle."""
    text = str(row["text"])
    return {"text": f"{text[: len(text) // 2]}!{text[len(text) // 2 :]}"}
