"""Keeps at most so many rows of each category."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Params
from dataflow_assets.operators.ranking import RankingOperator
from dataflow_assets.operators.registry import register


class _QuotaParams(Params):
    by: str = Field(min_length=1, description="The column of the categories.")
    max_rows: int | None = Field(None, ge=0, description="The most rows of a category.")
    max_share: float | None = Field(
        None, ge=0, le=1, description="The most rows of a category, as a share of all rows that came in."
    )
    rows: dict[str, int] = Field(
        default_factory=dict, description="The most rows of one category, in place of the general bounds."
    )
    best_by: str | None = Field(
        None, min_length=1, description="A column of numbers: the best stay. Without it, the first."
    )
    lowest_is_best: bool = Field(False, description="With `best_by`: the least number is the best.")

    @model_validator(mode="after")
    def _is_bounded(self) -> "_QuotaParams":
        if self.max_rows is None and self.max_share is None and not self.rows:
            raise ValueError("give max_rows, max_share or rows")
        if wrong := [name for name, rows in self.rows.items() if rows < 0]:
            raise ValueError(f"a number of rows is 0 or more; wrong: {', '.join(wrong)}")
        if self.lowest_is_best and self.best_by is None:
            raise ValueError("lowest_is_best needs best_by")
        return self


@register
class Quota(RankingOperator):
    """Keeps at most so many rows of each category, the best or the first of the whole data set.

    Grain: one row in, at most one out; order, ids and values unchanged. Scope: the whole data set; the
    result is the same for every batch size. Reads `by` (any type; a number is named as JSON writes it,
    null as `null`, and is a category too) and `best_by` (int64 or float64). Of the general bounds the
    least counts; `rows` goes before them. Of equal rows the first stays; rows without a number in
    `best_by`, or with NaN, come last. Rejected rows have the reason `over_quota`. Raises ConfigError,
    before any work, where `best_by` is no column of numbers. Deciding holds about 40 bytes a row.

    Example:
        - {name: balanced, type: quota, params: {by: site, max_rows: 1000, rows: {news: 200}, best_by: score}}
    """

    name = "quota"
    drop_reason = "over_quota"
    Params = _QuotaParams
    params: _QuotaParams

    @property
    def group_column(self) -> str | None:
        """The column of the categories."""
        return self.params.by

    def reads(self) -> list[str]:
        """The columns of the categories and of the numbers."""
        return [self.params.by, *([self.params.best_by] if self.params.best_by else [])]

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError where `best_by` holds no numbers."""
        best_by = self.params.best_by
        if best_by and schema.get(best_by, "int64") not in ("int64", "float64"):
            raise ConfigError(
                f"operator {self.name!r}: the column {best_by!r} of `best_by` is {schema[best_by]}, expected "
                "int64 or float64"
            )
        return dict(schema)

    def ranks(self, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        """The numbers, the best least."""
        if self.params.best_by is None:
            return pa.array(np.zeros(table.num_rows, np.int64))
        numbers = table[self.params.best_by]
        if pa.types.is_floating(numbers.type):
            numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, numbers.type), numbers)
            return numbers if self.params.lowest_is_best else pc.negate(numbers)
        return numbers if self.params.lowest_is_best else pc.bit_wise_not(numbers)

    def allowed(self, groups: Sequence[str | None], counts: np.ndarray) -> np.ndarray:
        """The bound of each category."""
        bounds = [int(counts.sum())]
        if self.params.max_rows is not None:
            bounds.append(self.params.max_rows)
        if self.params.max_share is not None:
            bounds.append(int(Fraction(str(self.params.max_share)) * int(counts.sum())))
        named = self.params.rows
        return np.array([named.get("null" if group is None else group, min(bounds)) for group in groups])
