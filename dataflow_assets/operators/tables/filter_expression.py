"""Keeps the rows on which a condition holds."""

import ast
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from dataflow_assets.batch import Schema, schema_of
from dataflow_assets.errors import ConfigError, MissingValue
from dataflow_assets.operators.operator import Outcome, Params, RowErrors, RowOperator, split_by_reason
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import by_halves
from dataflow_assets.operators.tables.expression import ExpressionError, Typed, columns_of, condition, parsed


class _FilterExpressionParams(Params):
    keep: str = Field(min_length=1, description="The condition on which a row stays.")
    reason: str = Field(
        "condition_false", min_length=1, max_length=100, description="The reason of the rows that go."
    )
    on_null: Literal["fail", "keep", "reject"] = Field(
        "fail",
        description="What becomes of a row whose condition is null: `fail`, `keep` or `reject`.",
    )

    @field_validator("keep")
    @classmethod
    def _is_condition(cls, keep: str) -> str:
        condition(parsed(keep))
        return keep


@register
class FilterExpression(RowOperator):
    """Keeps the rows on which a condition over their columns holds; nothing in it is ever executed.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads the columns that `keep`
    names. The language: `and or not`, `== != < <= > >=` (chained as in Python), `+ - * /`, `x in [1, 2]`,
    `'words' in text`, `is null`, `is not null`, `true`, `false`, texts in quotes, parentheses, and the
    functions len, lower, upper, strip, contains, startswith, endswith (literally), matches (RE2, anywhere
    in the text), abs, and `col('any name')`. Lengths are in code points, `/` is exact to a float.

    Null is unknown, as in SQL: `n > 3` is null where n is, `null or true` is true. A row on which the
    condition is null fails as MissingValue, unless `on_null` says otherwise (`reject` drops it as
    `condition_null`). NaN equals nothing. A JSON column counts as what its value is; a row whose value
    is of another type fails as WrongType, so do, as `ArrowInvalid`, rows with a division by zero or an
    integer beyond 64 bits. Other rows that go have the reason `reason`. Raises ConfigError, before any
    work, for types that do not fit.

    Example:
        - {name: good, type: filter_expression, params: {keep: "len(text) > 200 and lang in ['en', 'zh']"}}
    """

    name = "filter_expression"
    releases_gil = True
    Params = _FilterExpressionParams
    params: _FilterExpressionParams

    @cached_property
    def _tree(self) -> ast.expr:
        return parsed(self.params.keep)

    def reads(self) -> list[str]:
        """The columns that the condition names."""
        return columns_of(self._tree)

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError where their types do not fit the condition."""
        if set(self.reads()) <= set(schema):
            self._condition(schema)
        return dict(schema)

    def _condition(self, schema: Schema) -> Typed:
        try:
            return condition(self._tree, schema)
        except ExpressionError as error:
            raise ConfigError(f"operator {self.name!r}, condition {self.params.keep!r}: {error}") from error

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps the rows on which the condition is true."""
        holds = self._condition(schema_of(table))
        pieces = by_halves(table, lambda rows: _column(holds.values(rows), rows.num_rows))
        found = pa.concat_arrays([pa.array([], pa.bool_()), *pieces.results])
        return self._outcome(table, found, pieces.errors)

    def _outcome(self, table: pa.Table, found: pa.Array, errors: RowErrors) -> Outcome:
        """The outcome of conditions that were computed for all rows but those with an error."""
        whole = _with_gaps(found, errors.positions, table.num_rows)
        failed = set(errors.positions)
        nulls = [place for place in pc.indices_nonzero(pc.is_null(whole)).to_pylist() if place not in failed]
        reason, none = (pa.scalar(text, pa.large_string()) for text in (self.params.reason, None))
        reasons = pc.if_else(pc.fill_null(whole, True), none, reason)
        if self.params.on_null == "fail":
            for place in nulls:
                errors.add(place, MissingValue(f"missing value: {self.params.keep!r} is null on this row"))
        elif self.params.on_null == "reject":
            is_null = pc.is_null(whole)
            reasons = pc.if_else(is_null, pa.scalar("condition_null", pa.large_string()), reasons)
        return split_by_reason(table, reasons, errors.in_order())


def _column(values: Any, rows: int) -> pa.Array:
    if isinstance(values, pa.Scalar):
        return pa.array([values.as_py()] * rows, pa.bool_())
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _with_gaps(values: pa.Array, gaps: list[int], length: int) -> pa.Array:
    """The values in their order with a null at each of these places."""
    if not gaps:
        return values
    column, missing, rest = [], set(gaps), iter(values.to_pylist())
    for place in range(length):
        column.append(None if place in missing else next(rest))
    return pa.array(column, pa.bool_())
