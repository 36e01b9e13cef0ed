"""Rows as the pandas DataFrame that an operator of open-dataflow gets, and what it changed in them.

pandas has no exact form for all of our values: an integer beside a null becomes a float, a null NaN. So
only what an operator changed is taken out of its DataFrame; all else stays what it was.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dataflow_assets.batch import ROW_ID, ColumnType, json_text
from dataflow_assets.errors import RunError

if TYPE_CHECKING:
    import pandas as pd

_EXACT_IN_FLOAT = 2**53
Values = Sequence[object]


class Given(NamedTuple):
    """Columns of Python values, nested ones decoded; `row_id` is one of them."""

    columns: Mapping[str, Values]
    kinds: Mapping[str, ColumnType]

    @property
    def row_ids(self) -> Values:
        """The ids of the rows, in order."""
        return self.columns[ROW_ID]


class Returned(NamedTuple):
    """Rows that an operator wrote: the place of each among those given, in their order, and new values.

    `changed` has, for each column that it changed or added, the value of each of these rows.
    """

    places: list[int]
    changed: dict[str, list[object]]


def frame_of(given: Given) -> "pd.DataFrame":
    """The DataFrame, with the index 0, 1, … that rows read from a file have.

    Texts and nested values are Python objects, None where there is none. Numbers beside nulls are
    floats, as pandas reads them from a file, but integers that no float holds are Python objects.
    """
    import pandas as pd

    series = {name: _series(values, given.kinds[name]) for name, values in given.columns.items()}
    return pd.DataFrame(series, index=pd.RangeIndex(len(given.row_ids)))


def _series(values: Values, kind: ColumnType) -> "pd.Series":
    import pandas as pd

    has_null = any(value is None for value in values)
    if kind == "float64" or (kind == "int64" and has_null and _fit_floats(values)):
        return pd.Series([math.nan if value is None else value for value in values], dtype="float64")
    if kind in ("int64", "bool") and not has_null:
        return pd.Series(list(values), dtype=kind)
    objects = np.empty(len(values), object)
    objects[:] = values
    return pd.Series(objects, dtype=object)


def _fit_floats(values: Values) -> bool:
    return all(abs(value) <= _EXACT_IN_FLOAT for value in values if isinstance(value, int))


def returned_rows(frame: "pd.DataFrame", given: Given, operator: str) -> Returned:
    """What the operator wrote, by the ids of the rows. Raises RunError where rows cannot be followed."""
    if not len(frame):
        return Returned([], {})
    _check_columns(frame, operator)
    places = _places(frame, given, operator)
    order = np.argsort(places, kind="stable")
    places = [places[position] for position in order]
    changed: dict[str, list[object]] = {}
    for name in frame.columns:
        if name == ROW_ID:
            continue
        column = frame[name].tolist()
        values = _changes([column[position] for position in order], name, places, given)
        if values is not None:
            changed[str(name)] = values
    return Returned(places, changed)


def _check_columns(frame: "pd.DataFrame", operator: str) -> None:
    if ROW_ID not in frame.columns:
        raise RunError(
            f"{operator} wrote {len(frame)} rows without the column {ROW_ID!r}, so nobody can say which row "
            "each came of; say `one_by_one: true` if its rows are independent: it is then given one row at a "
            "time"
        )
    if not frame.columns.is_unique:
        raise RunError(f"{operator} wrote two columns of one name; they cannot be told apart")


def _places(frame: "pd.DataFrame", given: Given, operator: str) -> list[int]:
    known = {row_id: place for place, row_id in enumerate(given.row_ids)}
    places = []
    for row_id in frame[ROW_ID].tolist():
        place = known.get(row_id) if isinstance(row_id, str) else None
        if place is None:
            raise RunError(
                f"{operator} wrote a row with the {ROW_ID} {row_id!r}, which it was not given; rows keep "
                "their ids, and new rows have none: say `one_by_one: true` if its rows are independent"
            )
        places.append(place)
    return places


def _changes(values: list[object], name: str, places: list[int], given: Given) -> list[object] | None:
    """The values with what was not changed as it was given; None where nothing was."""
    if name not in given.columns:
        return [plain(value) for value in values]
    old, same = given.columns[name], _same_json if given.kinds[name] == "json" else _same
    before = [old[place] for place in places]
    kept = [same(new, was) for new, was in zip(values, before, strict=True)]
    if all(kept):
        return None
    return [was if is_same else plain(new) for new, was, is_same in zip(values, before, kept, strict=True)]


def _same(new: object, was: object) -> bool:
    """Whether a value is what it was, in one of the forms that pandas makes of it."""
    if new is was:
        return True
    if was is None or (isinstance(was, float) and was != was):
        return is_missing(new)
    if isinstance(was, str) or isinstance(new, str):
        return isinstance(new, str) and new == was
    try:
        return bool(new == was or (isinstance(new, float) and float(was) == new))  # pyright: ignore
    except (TypeError, ValueError, OverflowError):
        return False


def _same_json(new: object, was: object) -> bool:
    """Whether a nested value is what it was: equal as JSON, where 1, 1.0 and true are three."""
    try:
        new = plain(new)
        return type(new) is type(was) and json_text(new) == json_text(was)
    except (TypeError, ValueError):
        return False


def is_missing(value: object) -> bool:
    """Whether pandas takes a value for none: None, NaN, NA, NaT."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def plain(value: Any) -> object:
    """The value as Python has it, numpy's left behind; missing values are None, also within."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value
