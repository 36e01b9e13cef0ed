"""Reads the word lists and tables that refiners ship with."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "data"


@cache
def data_lines(name: str) -> tuple[str, ...]:
    """The lines of a file below `data`, without comments and blank lines."""
    lines = (_FOLDER / name).read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def data_table(name: str, separator: str) -> dict[str, str]:
    """The lines of a file below `data`, each cut at the separator."""
    pairs = (line.split(separator, 1) for line in data_lines(name))
    return {key.strip(): value.strip() for key, value in pairs}
