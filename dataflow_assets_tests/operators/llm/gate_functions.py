"""Gates of a user, named by path in the tests."""

from collections.abc import Mapping


def no_digits(answer: str, row: Mapping[str, object]) -> str | None:
    return "digits" if any(map(str.isdigit, answer)) and row.get("strict", True) else None


NOT_CALLABLE = 3
