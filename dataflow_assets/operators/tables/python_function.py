"""Runs a function of the user on each row."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    arrow_schema,
    column_of,
    column_type,
    rows_of,
    schema_of,
    values_of,
)
from dataflow_assets.errors import WrongType
from dataflow_assets.operators.operator import Outcome, RowErrors
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import rejected_rows
from dataflow_assets.operators.tables.user_function import UserFunctionOperator, UserFunctionParams

_REASON = "function_returned_none"
_PYTHON: dict[ColumnType, tuple[type, str]] = {
    "string": (str, "str"),
    "int64": (int, "int of 64 bits"),
    "float64": (float, "float"),
    "bool": (bool, "bool"),
    "json": (object, "a JSON value"),
}


@register
class MapPython(UserFunctionOperator):
    """Calls your Python function with each row; what it returns changes or adds columns.

    Grain: one row in, at most one out; order and ids unchanged. The function gets a row as a dict of
    Python values (JSON decoded, null as None) and returns a dict of the columns that change; others
    stay, and a declared column that it leaves out is null where it is new. None rejects the row with
    the reason `function_returned_none`. New columns, and those whose type changes, are declared in
    `columns`, because the columns of a step are known before its first row. Writes those.

    What the function raises sends its row to `_failed`, as does WrongType: a column that is not
    declared, a changed `row_id`, or a value of another type (only a whole number may stand for a
    float; nothing is converted). The step is redone when the function's source changes; for what
    the function calls, change `version`.

    Example:
        - {name: scored, type: map_python, params: {function: "my.module:score", columns: {score: float64}}}
    """

    name = "map_python"
    Params = UserFunctionParams
    params: UserFunctionParams

    def apply(self, table: pa.Table) -> Outcome:
        """The rows as the function changed them."""
        before = schema_of(table)
        schema = self.output_schema(before)
        errors, dropped, changes = RowErrors.none(), [], []
        keep = np.zeros(table.num_rows, bool)
        for position, row in enumerate(rows_of(table)):
            try:
                changed = self._changes(row, before, schema)
            except (Exception, SystemExit) as error:  # noqa: BLE001  the user's function may raise anything; its row fails alone
                errors.add(position, error)
                continue
            if changed is None:
                dropped.append(position)
            else:
                keep[position] = True
                changes.append(changed)
        result = _with_changes(table.filter(pa.array(keep)), changes, schema)
        rejected = rejected_rows(table, np.array(dropped, np.int64), _REASON)
        return Outcome(result, rejected, errors.failed_rows(table))

    def _changes(self, row: dict[str, object], before: Schema, schema: Schema) -> dict[str, object] | None:
        """The new values of a row, checked; None where the function rejects it."""
        original = dict(row)
        returned = self.function(row)
        if returned is None:
            return None
        if not isinstance(returned, Mapping):
            raise WrongType(
                f"wrong type: {self.params.function} returned {type(returned).__name__}, expected a dict "
                "of the changed columns, or None to drop the row"
            )
        for name in returned:
            if name not in schema:
                raise WrongType(
                    f"wrong type: {self.params.function} returned the column {name!r}, which is not "
                    f"declared; add it to the step's params, e.g. `columns: {{{name}: string}}`"
                )
        if returned.get(ROW_ID, original[ROW_ID]) != original[ROW_ID]:
            raise WrongType(
                f"wrong type: {self.params.function} changed {ROW_ID!r}, which belongs to the row; leave it"
            )
        retyped = {name: original[name] for name in before if before[name] != schema[name]}
        return {
            name: self._checked(name, value, schema[name]) for name, value in {**retyped, **returned}.items()
        }

    def _checked(self, name: str, value: object, kind: ColumnType) -> object:
        if value is None:
            return None
        try:
            if kind == "float64" and type(value) is int and float(value) == value:
                return float(value)
            if isinstance(value, _PYTHON[kind][0]) and not (kind == "int64" and isinstance(value, bool)):
                column_of([value], kind)
                return value
            problem = type(value).__name__
        except (TypeError, ValueError, OverflowError, UnicodeEncodeError) as error:
            problem = f"{type(value).__name__} that does not fit ({error})"
        raise WrongType(
            f"wrong type: {self.params.function} gave {problem} for column {name!r}, expected "
            f"{_PYTHON[kind][1]} (column type {kind})"
        )


def _with_changes(rows: pa.Table, changes: list[dict[str, object]], schema: Schema) -> pa.Table:
    """The rows with their new values; a column that no row changes is not rebuilt."""
    changed = {name for change in changes for name in change}
    arrays = []
    for name, kind in schema.items():
        present = rows.schema.get_field_index(name) >= 0
        if present and name not in changed and column_type(rows.schema.field(name)) == kind:
            arrays.append(rows[name])
            continue
        old = values_of(rows, name) if present else [None] * rows.num_rows
        new = [change.get(name, value) for change, value in zip(changes, old, strict=True)]
        arrays.append(column_of(new, kind))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))
