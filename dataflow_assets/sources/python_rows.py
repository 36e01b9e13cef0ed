"""Rows that come as Python dicts to chunks: exact values, and what has no column type by name."""

import math
from collections.abc import Sequence

import pyarrow as pa

from dataflow_assets.sources.chunk import BadRecord, Chunk, raw_text
from dataflow_assets.sources.columns import UnfitRows, final_names, table_of_values
from dataflow_assets.sources.reading_spec import ReadingSpec

_PLAIN = (str, int, float, bool, type(None))


def chunk_of_rows(rows: Sequence[object], first: int, piece: str, spec: ReadingSpec) -> Chunk:
    """The rows, numbered from `first`; a row that is no dict of JSON values is bad."""
    good: list[dict[str, object]] = []
    numbers: list[int] = []
    bad: list[BadRecord] = []
    for number, row in enumerate(rows, first):
        reason = _unfit(row)
        if reason is None:
            assert isinstance(row, dict)
            good.append(row)
            numbers.append(number)
        else:
            bad.append(BadRecord(piece, number, reason, _raw(row)))
    names = final_names(dict.fromkeys(name for row in good for name in row), piece, spec)
    while True:
        try:
            values = {old: [row.get(old) for row in good] for old in names}
            table = table_of_values(values, names, len(good))
        except UnfitRows as unfit:
            bad += [
                BadRecord(piece, numbers[place], why, _raw(good[place]))
                for place, why in unfit.reasons.items()
            ]
            kept = [place for place in range(len(good)) if place not in unfit.reasons]
            good, numbers = [good[place] for place in kept], [numbers[place] for place in kept]
        else:
            bad.sort(key=lambda record: record.line)
            return Chunk(table, pa.array(numbers, pa.int64()), bad)


def _unfit(row: object) -> str | None:
    """Why the row is none; None for a dict of JSON values."""
    if not isinstance(row, dict):
        return f"not an object: {type(row).__name__}; expected a dict"
    for name, value in row.items():
        if not isinstance(name, str):
            return f"not a column name: {type(name).__name__}; expected text"
        if (odd := _odd_part(value)) is not None:
            told = odd if isinstance(odd, float) else type(odd).__name__
            return (
                f"no JSON value: column {name!r} holds {told}; "
                "expected text, numbers, booleans, None, lists and dicts"
            )
    return None


def _odd_part(value: object) -> object | None:
    """The first part of a value that JSON has not; no recursion, so no depth is too much."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if type(part) is dict:
            if any(type(key) is not str for key in part):
                return next(key for key in part if type(key) is not str)
            waiting += part.values()
        elif type(part) is list:
            waiting += part
        elif isinstance(part, float):
            if not math.isfinite(part):
                return part
        elif not isinstance(part, _PLAIN):
            return part
    return None


def _raw(row: object) -> str:
    """The row as readable text, for a person."""
    return raw_text(repr(row).encode("utf-8", "backslashreplace"))
