"""Runs a function of the user on whole tables: as Arrow, or as a pandas DataFrame."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    arrow_field,
    arrow_schema,
    column_of,
    json_value,
    schema_of,
    values_of,
)
from dataflow_assets.errors import WrongType
from dataflow_assets.operators.operator import REJECT_REASON, Outcome, split_by_reason
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import by_halves
from dataflow_assets.operators.tables.user_function import UserFunctionOperator, UserFunctionParams

if TYPE_CHECKING:
    import pandas as pd

_NO_ROW = "function_dropped_row"


class BatchFunctionOperator(UserFunctionOperator):
    """Calls a function with a table of rows and takes what it returns."""

    @abstractmethod
    def called(self, table: pa.Table) -> Mapping[str, Any]:
        """The columns that the function returns for these rows."""

    @abstractmethod
    def column(self, values: Any, kind: ColumnType) -> pa.Array:
        """A returned column as one of this type. Raises WrongType, or what Arrow raises."""

    def apply(self, table: pa.Table) -> Outcome:
        """The rows as the function changed them, in their order."""
        schema = self.output_schema(schema_of(table))
        pieces = by_halves(table, lambda rows: self._done(rows, schema))
        done = [kept for kept, _ in pieces.results]
        kept = pa.concat_tables([arrow_schema(schema).empty_table(), *done])
        rejected = [gone for _, gone in pieces.results if gone is not None]
        failed = pieces.errors.in_order().failed_rows(table)
        return Outcome(kept, pa.concat_tables(rejected) if rejected else None, failed)

    def _done(self, rows: pa.Table, schema: Schema) -> tuple[pa.Table, pa.Table | None]:
        """What became of some rows: those that stay, and those that the function dropped."""
        columns = dict(self.called(rows))
        places = self._places(rows, columns)
        reasons = self._reasons(columns.pop(REJECT_REASON, None), places)
        outcome = split_by_reason(rows, reasons)
        stay = places.filter(pc.is_null(reasons))
        kept = self._kept(outcome.kept, columns, stay, schema)
        return kept, outcome.rejected

    def _places(self, rows: pa.Table, columns: Mapping[str, Any]) -> pa.Array:
        """The place of each row in what was returned; null for a row that is not there."""
        if ROW_ID not in columns:
            raise self._wrong(f"returned no column {ROW_ID!r}; leave it in")
        returned = self._checked(ROW_ID, columns[ROW_ID], "string")
        if len(pc.unique(returned)) < len(returned):
            raise self._wrong(f"returned a {ROW_ID!r} twice; a row may be changed or dropped, not doubled")
        places = pc.index_in(rows[ROW_ID].combine_chunks(), returned)
        if len(places) - places.null_count < len(returned):
            raise self._wrong(f"returned a {ROW_ID!r} that it was not given; rows keep their ids")
        return places

    def _reasons(self, given: Any, places: pa.Array) -> pa.Array:
        """The reason of each row to go: the function's own, or that it is not there."""
        reasons = pa.nulls(len(places), pa.large_string())
        if given is not None:
            reasons = self._checked(REJECT_REASON, given, "string").take(places)
        return pc.if_else(pc.is_null(places), pa.scalar(_NO_ROW, pa.large_string()), reasons)

    def _kept(self, rows: pa.Table, columns: Mapping[str, Any], places: pa.Array, schema: Schema) -> pa.Table:
        """The rows with their new values; a column that was not returned stays, a new one is null."""
        if unknown := [name for name in columns if name not in schema]:
            raise self._wrong(
                f"returned the column {unknown[0]!r}, which is not declared; add it to the step's params, "
                f"e.g. `columns: {{{unknown[0]}: string}}`"
            )
        arrays = []
        for name, kind in schema.items():
            if name in columns:
                arrays.append(self._checked(name, columns[name], kind).take(places))
            elif rows.schema.get_field_index(name) >= 0:
                arrays.append(self._unchanged(rows, name, kind))
            else:
                arrays.append(column_of([None] * len(places), kind))
        return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))

    def _unchanged(self, rows: pa.Table, name: str, kind: ColumnType) -> pa.Array | pa.ChunkedArray:
        if rows.schema.field(name).equals(arrow_field(name, kind), check_metadata=True):
            return rows[name]
        return self._checked(name, rows[name].combine_chunks(), kind)

    def _checked(self, name: str, values: Any, kind: ColumnType) -> pa.Array:
        try:
            return self.column(values, kind)
        except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
            raise self._wrong(f"gave values for column {name!r} that are no {kind}: {error}") from error

    def _wrong(self, message: str) -> WrongType:
        return WrongType(f"wrong type: {self._own.function} {message}")


@register
class MapArrow(BatchFunctionOperator):
    """Calls your Python function with an Arrow table of rows; it may change columns and drop rows.

    Grain: one row in, at most one out; order and ids unchanged. The function gets a `pyarrow.Table`
    (strings as large_string, JSON columns as their text) and returns one with `row_id`; other columns
    that it leaves out stay as they were. A row that it leaves out is rejected as `function_dropped_row`,
    one with a text in the column `reject_reason` for that reason. New columns, and those whose type
    changes, are declared in `columns`; writes those. Integers may come for floats, nested values and
    texts of JSON for JSON; nothing else is converted.

    Rows must be independent: the function gets any part of a batch, and where it raises, or returns
    what it may not, it is called with the halves, until the rows that fail are found; they fail alone.
    The step is redone when the function's source changes; for what it calls, change `version`.

    Example:
        - {name: scored, type: map_arrow, params: {function: "my.module:score", columns: {score: float64}}}
    """

    name = "map_arrow"
    version = "2"
    Params = UserFunctionParams
    params: UserFunctionParams

    def called(self, table: pa.Table) -> Mapping[str, Any]:
        """The columns of the table that the function returns."""
        returned = self.function(table)
        if not isinstance(returned, pa.Table):
            raise self._wrong(f"returned {type(returned).__name__}, expected a pyarrow Table")
        if len(set(returned.column_names)) < returned.num_columns:
            raise self._wrong("returned two columns of one name")
        columns = {name: returned[name].combine_chunks() for name in returned.column_names}
        if ROW_ID not in columns or not returned[ROW_ID].equals(table[ROW_ID]):
            return columns
        given = {name for name in table.column_names if name != ROW_ID}  # left out where it is as it was
        return {
            name: values
            for name, values in columns.items()
            if name not in given or not returned[name].equals(table[name])
        }

    def column(self, values: pa.Array, kind: ColumnType) -> pa.Array:
        """The array itself, or its exact form in the type."""
        return _as_type(values, kind)


@register
class MapPandas(BatchFunctionOperator):
    """Calls your Python function with a pandas DataFrame of rows; it may change columns and drop rows.

    Grain: one row in, at most one out; order and ids unchanged. The function gets a DataFrame of
    nullable types, so that integers with nulls stay exact (JSON columns as Python values), and returns
    one with the column `row_id`; its index is not looked at, and other columns that it leaves out stay
    as they were. A row that it leaves out is rejected as `function_dropped_row`, one with a text in the
    column `reject_reason` for that reason. New columns, and those whose type changes, are declared in
    `columns`; writes those. Integers may come for floats, nothing else is converted; NaN and None are
    null.

    Rows must be independent: the function gets any part of a batch, and where it raises, or returns
    what it may not, it is called with the halves, until the rows that fail are found; they fail alone.
    The step is redone when the function's source changes; for what it calls, change `version`. Needs
    the extra `pandas`.

    Example:
        - {name: scored, type: map_pandas, params: {function: "my.module:score", columns: {score: float64}}}
    """

    name = "map_pandas"
    version = "2"
    Params = UserFunctionParams
    params: UserFunctionParams

    def needed_packages(self) -> Mapping[str, str]:
        """Pandas itself."""
        return {"pandas": "pandas"}

    def called(self, table: pa.Table) -> Mapping[str, Any]:
        """The columns of the DataFrame that the function returns."""
        import pandas as pd

        returned = self.function(self._frame(table))
        if not isinstance(returned, pd.DataFrame):
            raise self._wrong(f"returned {type(returned).__name__}, expected a pandas DataFrame")
        if not returned.columns.is_unique:
            raise self._wrong("returned two columns of one name")
        return {str(name): returned[name] for name in returned.columns}

    def _frame(self, table: pa.Table) -> "pd.DataFrame":
        import pandas as pd

        types = {
            pa.large_string(): pd.StringDtype("pyarrow"),
            pa.int64(): pd.Int64Dtype(),
            pa.float64(): pd.Float64Dtype(),
            pa.bool_(): pd.BooleanDtype(),
        }
        frame = table.to_pandas(types_mapper=types.get)
        for name, kind in schema_of(table).items():
            if kind == "json":
                values = np.empty(table.num_rows, object)
                values[:] = values_of(table, name)
                frame[name] = pd.Series(values, index=frame.index, dtype=object)
        return frame

    def column(self, values: "pd.Series", kind: ColumnType) -> pa.Array:
        """The series as a column; NaN and None are null."""
        if isinstance(values, pa.Array):
            return _as_type(values, kind)
        if kind == "json":
            return column_of([None if _is_missing(value) else value for value in values.tolist()], kind)
        array = pa.Array.from_pandas(values)
        return _as_type(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, kind)


def _is_missing(value: object) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _as_type(values: pa.Array, kind: ColumnType) -> pa.Array:
    """The values in the Arrow type of a column; only widths of one kind of value are changed."""
    if kind == "json":
        return _json_texts(values)
    wanted = arrow_field("", kind).type
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == wanted:
        return values
    found = values.type
    fits = {
        "string": pa.types.is_string(found) or pa.types.is_string_view(found),
        "int64": pa.types.is_integer(found),
        "float64": pa.types.is_floating(found) or pa.types.is_integer(found),
        "bool": False,
    }
    if pa.types.is_null(found) or fits[kind]:
        return values.cast(wanted)
    raise TypeError(f"found the Arrow type {found}")


def _json_texts(values: pa.Array) -> pa.Array:
    """Text of JSON in its canonical form, nested values as their JSON. Raises ValueError for other text."""
    if pa.types.is_nested(values.type):
        return column_of(values.to_pylist(), "json")
    texts = _as_type(values, "string").to_pylist()
    return column_of([None if text is None else json_value(text) for text in texts], "json")
