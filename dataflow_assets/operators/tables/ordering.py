"""Gives rows another order: within a batch, over the whole data set, or at random."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from dataflow_assets.batch import ROW_ID, Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Outcome, Params, RowOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.regrouping import ReorderingOperator, SpooledRows
from dataflow_assets.operators.row_hashes import row_hashes


class _SortParams(Params):
    by: list[str] = Field(min_length=1, description="The columns, the most important first.")
    descending: bool = Field(False, description="The greatest first, for all columns.")

    @field_validator("by")
    @classmethod
    def _each_once(cls, by: list[str]) -> list[str]:
        if len(set(by)) < len(by):
            raise ValueError("a column is named twice")
        return by

    def order(self, rows: pa.Table) -> pa.Array:
        """The positions of the rows in their new order."""
        direction = "descending" if self.descending else "ascending"
        return pc.sort_indices(rows, sort_keys=[(name, direction) for name in self.by])

    def checked(self, operator: str, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError for one that has no order."""
        if nested := [name for name in self.by if schema.get(name) == "json"]:
            raise ConfigError(
                f"operator {operator!r} cannot sort by {', '.join(map(repr, nested))}: the values are JSON, "
                "which has no order; make it one type with `map_python`"
            )
        return dict(schema)


@register
class SortBatch(RowOperator):
    """Sorts the rows of each batch by columns; no row leaves its batch.

    Grain: one row in, one row out; ids and values unchanged. Reads `by` (string, int64, float64 or
    bool). The order depends on the batch size; `sort` orders the whole data set. Equal rows stay in
    their order. Texts are compared by code points; NaN and then null come last, whatever the
    direction. Raises ConfigError, before any work, for a column of JSON.

    Example:
        - {name: long_first, type: sort_batch, params: {by: [n_chars], descending: true}}
    """

    name = "sort_batch"
    # Not for the speed alone: a batch is never cut into chunks for threads.
    releases_gil = True
    Params = _SortParams
    params: _SortParams

    def reads(self) -> list[str]:
        """The columns to sort by."""
        return list(self.params.by)

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError for one of JSON."""
        return self.params.checked(self.name, schema)

    def apply(self, table: pa.Table) -> Outcome:
        """The same rows in order."""
        return Outcome(table.take(self.params.order(table)))


@register
class Sort(ReorderingOperator):
    """Sorts the whole data set by columns; each batch keeps its number of rows, not its rows.

    Grain: one row in, one row out; ids and values unchanged. Scope: the whole data set; the result is
    the same for every batch size. Reads `by` (string, int64, float64 or bool). Equal rows stay in
    their order. Texts are compared by code points; NaN and then null come last, whatever the
    direction. Raises ConfigError, before any work, for a column of JSON.

    The state holds all rows once more. While it sorts, a temporary file does too, and memory holds the
    columns of `by` and 8 bytes a row. New rows make every batch again.

    Example:
        - {name: best_first, type: sort, params: {by: [score], descending: true}}
    """

    name = "sort"
    Params = _SortParams
    params: _SortParams

    def reads(self) -> list[str]:
        """The columns to sort by."""
        return list(self.params.by)

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError for one of JSON."""
        return self.params.checked(self.name, schema)

    def order(self, rows: SpooledRows) -> np.ndarray:
        """By the columns."""
        return self.params.order(rows.columns(self.params.by)).to_numpy().astype(np.int64)


class _ShuffleParams(Params):
    seed: int = Field(0, description="Another seed gives another order.")


@register
class Shuffle(ReorderingOperator):
    """Puts the rows of the whole data set in a random order; each batch keeps its number of rows.

    Grain: one row in, one row out; ids and values unchanged. Scope: the whole data set. Reads `row_id`:
    the order is that of a hash of `seed` and the id, so it is the same for every batch size, and rows
    that come later leave that of the others as it was. Raises nothing on rows.

    The state holds all rows once more. While it shuffles, a temporary file does too, and memory holds
    24 bytes a row. New rows make every batch again.

    Example:
        - {name: mixed, type: shuffle, params: {seed: 7}}
    """

    name = "shuffle"
    Params = _ShuffleParams
    params: _ShuffleParams

    def order(self, rows: SpooledRows) -> np.ndarray:
        """By the hashes of the ids."""
        return np.argsort(row_hashes(rows.columns([ROW_ID])[ROW_ID], self.params.seed), kind="stable")
