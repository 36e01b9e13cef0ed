"""What the formats share: checks of a table to write and of what was read, and the way to polars."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, ColumnType, column_type, table_of
from dataflow_assets.errors import CorruptFile, UnwritableValue

_PYTHON: dict[ColumnType, type] = {"string": str, "int64": int, "float64": float, "bool": bool}


def check_encodable(table: pa.Table, format: str) -> None:
    """Raises UnwritableValue if `format` cannot give back every column and value of the table."""
    if len(set(table.column_names)) < table.num_columns:
        raise UnwritableValue(f"two columns have one name, in {table.column_names}: rename one of them")
    for unfit in unfit_numbers(table, format):
        _refuse(table, *unfit)
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = column_type(field)
        if kind == "json" and format in ("jsonl", "json", "pickle"):
            _refuse(
                table, field.name, pc.equal(column, "null"), "a JSON column holds null as a null, not as text"
            )
        if kind == "json" and format in ("jsonl", "json"):
            unfit = pc.match_substring(column, "\n")
            _refuse(table, field.name, unfit, "write JSON text with `batch.json_text`, without line breaks")


class UnfitNumbers(NamedTuple):
    """The rows of a column, as a mask, whose number a format does not have, and what to do about it."""

    column: str
    rows: pa.ChunkedArray
    reason: str


def unfit_numbers(table: pa.Table, format: str) -> Iterator[UnfitNumbers]:
    """NaN and infinities where the format is JSON, column by column; nothing where all can be written."""
    if format not in ("jsonl", "json"):
        return
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_floating(field.type):
            continue
        unfit = pc.fill_null(pc.invert(pc.is_finite(column)), False)
        if pc.any(unfit).as_py():
            yield UnfitNumbers(field.name, unfit, f"{format} has no such number: use csv or parquet, or null")


def _refuse(table: pa.Table, name: str, unfit: pa.ChunkedArray, reason: str) -> None:
    if not pc.any(unfit).as_py():
        return
    row = pc.index(unfit, True).as_py()
    row_id = table[ROW_ID][row].as_py() if ROW_ID in table.column_names else f"number {row + 1}"
    value = table[name][row].as_py()
    raise UnwritableValue(f"column {name!r} of row {row_id} holds {value!r:.200}; {reason}")


def in_polars(table: pa.Table) -> pl.DataFrame:
    """The columns, not copied, under the names 0, 1, …: polars changes the name `""` and loses NUL."""
    frame = pl.from_arrow(table.rename_columns([str(n) for n in range(table.num_columns)]))
    assert isinstance(frame, pl.DataFrame)
    return frame


def check_columns(table: pa.Table, schema: Mapping[str, ColumnType]) -> None:
    """Raises CorruptFile unless the columns of a table read are those of `schema`, in any order."""
    try:
        found = table.column_names
    except UnicodeDecodeError as error:
        raise CorruptFile(f"a column name is not UTF-8: {error.object!r}") from error
    if sorted(found) != sorted(schema):
        raise CorruptFile(f"the columns are {found}; expected {list(schema)}")


def table_of_rows(rows: Mapping[int, object], schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of these rows of Python values; the keys are the row numbers that a message names.

    Raises CorruptFile for a row that is no dict of the columns, or a value of another type.
    """
    columns: dict[str, list] = {name: [] for name in schema}
    for number, row in rows.items():
        if not isinstance(row, dict):
            raise CorruptFile(f"row {number} is {row!r:.200}; expected an object")
        if row.keys() != schema.keys():
            raise CorruptFile(f"row {number} has the columns {list(row)}; expected {list(schema)}")
        for name, values in columns.items():
            values.append(row[name])
    for name, kind in schema.items():
        _check_type(name, kind, rows, columns[name])
    try:
        return table_of(columns, schema)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CorruptFile(f"a value does not fit its column: {error}") from error


def _check_type(name: str, kind: ColumnType, numbers: Iterable[int], values: list) -> None:
    if kind == "json" or set(map(type, values)) <= {_PYTHON[kind], type(None)}:
        return
    fitting = (_PYTHON[kind], type(None))
    number, value = next((n, v) for n, v in zip(numbers, values, strict=True) if type(v) not in fitting)
    raise CorruptFile(f"column {name!r} is {kind}, but row {number} holds {value!r:.200}")
