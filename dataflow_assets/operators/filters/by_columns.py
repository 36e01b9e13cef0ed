"""Filters rows by bounds on columns of numbers, such as those that `mode: annotate` adds."""

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dataflow_assets.errors import Raised
from dataflow_assets.operators.filters.number import Bound, bound_reasons, numbers_of
from dataflow_assets.operators.operator import Outcome, Params, RowErrors, RowOperator, split_by_reason
from dataflow_assets.operators.registry import register


class _Bounds(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    min: Bound | None = None
    max: Bound | None = None

    @model_validator(mode="after")
    def _make_sense(self) -> "_Bounds":
        if self.min is None and self.max is None:
            raise ValueError("give min or max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}: no row could pass")
        return self


class _FilterByParams(Params):
    rules: dict[str, _Bounds] = Field(
        min_length=1, description="For each column the least (`min`) and the most (`max`) that stays."
    )


@register
class FilterBy(RowOperator):
    """Keeps the rows whose numbers are within bounds, column by column; bounds belong to the range.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads the columns of `rules`
    (int64 or float64), compared exactly. They are looked at in the order given; the first that is out of
    its bounds gives the reason `<column>_too_low` or `<column>_too_high`. A null is a measure that is not
    defined for its text and passes: so the bounds of a filter's profile, on the columns that the
    filter adds in `mode: annotate`, give its verdicts. NaN and a column of another type fail their
    rows as WrongType.

    Example:
        - name: good
          type: filter_by
          params:
            rules:
              gopher_quality_words: {min: 50, max: 100000}
              gopher_quality_stop_words: {min: 2}
    """

    name = "filter_by"
    version = "2"
    releases_gil = True
    Params = _FilterByParams
    params: _FilterByParams

    def reads(self) -> list[str]:
        """The columns of numbers."""
        return list(self.params.rules)

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps the rows without a reason, in order."""
        reasons = pa.chunked_array([pa.nulls(len(table), pa.large_string())])
        failed: dict[int, Raised] = {}
        for column, bounds in self.params.rules.items():
            numbers, errors = numbers_of(table, column)
            failed = dict(zip(*errors, strict=True)) | failed
            missed = bound_reasons(numbers, bounds.min, bounds.max, f"{column}_")
            reasons = pc.coalesce(reasons, missed)
        return split_by_reason(table, reasons, RowErrors(list(failed), list(failed.values())).in_order())
