"""Filters rows by a number."""

import math
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from dataflow_assets.batch import column_type, places_where
from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.operator import Outcome, Params, RowErrors, RowOperator, split_by_reason
from dataflow_assets.operators.registry import register

_LEAST, _MOST = -(2**63), 2**63 - 1

Bound = Annotated[int, Field(ge=_LEAST, le=_MOST)] | float
"""A bound as it was written: a whole number stays one, so that it is compared exactly."""


class _FilterNumberParams(Params):
    column: str = Field(min_length=1, description="A column of numbers.")
    min: Bound | None = Field(None, description="The least that stays.")
    max: Bound | None = Field(None, description="The most that stays.")

    @model_validator(mode="after")
    def _bounds_make_sense(self) -> "_FilterNumberParams":
        if self.min is None and self.max is None:
            raise ValueError("give min or max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}: no row could pass")
        return self


@register
class FilterNumber(RowOperator):
    """Keeps the rows whose number is within bounds; bounds belong to the range.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (int64 or
    float64) and compares it exactly, also beyond 2^53. Rejected rows have the reason `too_low` or
    `too_high`. A null fails its row as MissingValue, NaN and a column of another type as WrongType.

    Example:
        - {name: good, type: filter_number, params: {column: score_total, min: 7}}
    """

    name = "filter_number"
    version = "2"
    releases_gil = True
    Params = _FilterNumberParams
    params: _FilterNumberParams

    def reads(self) -> list[str]:
        """The column of numbers."""
        return [self.params.column]

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps the rows without a reason, in order."""
        name = self.params.column
        numbers, errors = numbers_of(table, name)
        return split_by_reason(
            table,
            bound_reasons(numbers, self.params.min, self.params.max),
            _with_nulls(name, numbers, errors),
        )


def bound_reasons(
    numbers: pa.ChunkedArray, least: float | None, most: float | None, prefix: str = ""
) -> pa.ChunkedArray:
    """For each number `<prefix>too_low` or `<prefix>too_high`, or null: within the bounds, or no number."""
    text = pa.large_string()
    reasons = pa.chunked_array([pa.nulls(len(numbers), text)])
    for bound, outside, side in ((least, pc.less, "too_low"), (most, pc.greater, "too_high")):
        if bound is not None:
            missed = pc.fill_null(outside(*_of_one_type(numbers, bound, side == "too_low")), False)
            reasons = pc.if_else(missed, pa.scalar(f"{prefix}{side}", text), reasons)
    return reasons


def _of_one_type(numbers: pa.ChunkedArray, bound: float, up: bool) -> tuple[pa.ChunkedArray, pa.Scalar]:
    """Both as one type, in which the bound is itself or the next number within the range."""
    if pa.types.is_floating(numbers.type):
        near = float(bound)
        is_outside = near < bound if up else near > bound
        return numbers, pa.scalar(math.nextafter(near, math.inf if up else -math.inf) if is_outside else near)
    if _LEAST <= bound <= _MOST:
        return numbers, pa.scalar(math.ceil(bound) if up else math.floor(bound), numbers.type)
    beyond_all = math.copysign(math.inf, bound)
    return pc.cast(numbers, pa.float64(), safe=False), pa.scalar(beyond_all)


def numbers_of(table: pa.Table, name: str) -> tuple[pa.ChunkedArray, RowErrors]:
    """The column, and an error for NaN, or for every row where the column holds no numbers."""
    kind = column_type(table.schema.field(name))
    if kind not in ("int64", "float64"):
        error = WrongType(f"wrong type: column {name!r} is {kind}, expected int64 or float64")
        nothing = pa.chunked_array([pa.nulls(len(table), pa.float64())])
        return nothing, RowErrors(list(range(len(table))), [error] * len(table))
    numbers = table[name]
    places = places_where(pc.fill_null(numbers.is_nan(), False)).to_pylist()
    error = WrongType(f"wrong type: column {name!r} holds NaN, expected a number")
    return numbers, RowErrors(places, [error] * len(places))


def _with_nulls(name: str, numbers: pa.ChunkedArray, errors: RowErrors) -> RowErrors:
    known = set(errors.positions)
    for position in places_where(numbers.is_null()).to_pylist():
        if position not in known:
            errors.add(position, MissingValue(f"missing {name}: the row has no value in column {name!r}"))
    return errors.in_order()
