"""Keeps the rows on which a condition holds."""

import ast
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from dataflow_assets.batch import Schema, column_type, places_where, schema_of
from dataflow_assets.errors import ConfigError, MissingValue
from dataflow_assets.operators.operator import Outcome, Params, RowErrors, RowOperator, split_by_reason
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import by_halves
from dataflow_assets.operators.tables.expression import ExpressionError, Typed, columns_of, condition, parsed

_WHOLE_NUMBER = r"^-?[0-9]+$"


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
    version = "2"
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
        found, errors, order = [pa.array([], pa.bool_())], RowErrors.none(), []
        for places in _alike(table, self.reads()):
            rows = table.take(pa.array(places)) if len(places) < table.num_rows else table
            pieces = by_halves(rows, lambda rows: _column(holds.values(rows), rows.num_rows))
            found += pieces.results
            order.append(np.delete(places, pieces.errors.positions))
            for position, error in zip(*pieces.errors, strict=True):
                errors.add(int(places[position]), error)
        computed = pc.index_in(pa.array(range(table.num_rows), pa.int64()), pa.array(np.concatenate(order)))
        return self._outcome(table, pa.concat_arrays(found).take(computed), errors)

    def _outcome(self, table: pa.Table, whole: pa.Array, errors: RowErrors) -> Outcome:
        """The outcome of a condition on each row; it is null for those with an error too."""
        failed = set(errors.positions)
        nulls = [place for place in places_where(pc.is_null(whole)).to_pylist() if place not in failed]
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


def _alike(table: pa.Table, names: Sequence[str]) -> list[np.ndarray]:
    """The places of rows that are computed together: whole numbers in the same columns of JSON.

    Whole numbers are computed exactly, all others as floats, and a row must not be another for its
    neighbours.
    """
    groups = np.zeros(table.num_rows, np.int64)
    for name in names:
        if column_type(table.schema.field(name)) == "json":
            is_whole = pc.fill_null(pc.match_substring_regex(table[name], _WHOLE_NUMBER), False).to_numpy()
            _, groups = np.unique(2 * groups + is_whole, return_inverse=True)
    return [np.flatnonzero(groups == group) for group in range(groups.max(initial=0) + 1)]
