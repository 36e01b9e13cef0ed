"""What operators on tables share: rows by position, a function tried on ever smaller pieces."""

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dataflow_assets.batch import Schema, arrow_field, arrow_schema, column_of, json_text, values_of
from dataflow_assets.errors import StorageError
from dataflow_assets.operators.operator import REJECT_REASON, Outcome, RowErrors


class Pieces(NamedTuple):
    """What a function gave for pieces of a table, in order, and the rows on which it raised."""

    results: list
    errors: RowErrors


def by_halves(table: pa.Table, function: Callable[[pa.Table], object]) -> Pieces:
    """Calls `function` with the table, and with its halves where it raises, down to the rows that fail."""
    pieces = Pieces([], RowErrors.none())
    pending = [(0, table.num_rows)] if table.num_rows else []
    while pending:
        begin, end = pending.pop()
        try:
            pieces.results.append(function(table.slice(begin, end - begin)))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
            if end - begin > 1:
                middle = (begin + end) // 2
                pending += [(middle, end), (begin, middle)]
            else:
                pieces.errors.add(begin, error)
    return pieces


def rows_with(
    table: pa.Table, positions: Sequence[int], new: Mapping[str, Sequence[object]], schema: Schema
) -> pa.Table:
    """The rows at these positions, with the columns of `schema`: those of `new`, the others as they were."""
    rows = table.take(pa.array(positions, pa.int64()))
    arrays = [column_of(new[name], kind) if name in new else rows[name] for name, kind in schema.items()]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def rejected_rows(table: pa.Table, positions: np.ndarray, reason: str) -> pa.Table | None:
    """The rows at these positions with their reason; None where there are none."""
    if not len(positions):
        return None
    reasons = pa.array([reason] * len(positions), pa.large_string())
    return table.take(pa.array(positions)).append_column(arrow_field(REJECT_REASON, "string"), reasons)


def without_rows(table: pa.Table, positions: np.ndarray, reason: str) -> Outcome:
    """The table without the rows at these positions, which are rejected."""
    keep = np.ones(table.num_rows, bool)
    keep[positions] = False
    return Outcome(table.filter(pa.array(keep)), rejected_rows(table, positions, reason))


def labels_of(table: pa.Table, name: str) -> list[str | None]:
    """The values of a column as words: texts as they are, all others as JSON, NaN and infinity as Python."""
    return [None if value is None else _label(value) for value in values_of(table, name)]


def _label(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)  # `NaN`, `Infinity`: JSON has no word for them
    return value if isinstance(value, str) and is_unicode(value) else json_text(value)


@contextmanager
def put_aside(what: str) -> Iterator[None]:
    """Writes to a temporary file within it raise StorageError where the disk is full."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{what} cannot be put aside in {tempfile.gettempdir()}: {error.strerror}; "
            "make room, or set TMPDIR to another folder"
        ) from error


def is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
