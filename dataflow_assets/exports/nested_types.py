"""JSON columns as nested Arrow columns, where that gives back exactly the same values; else as their text."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from dataflow_assets.batch import Schema, values_of
from dataflow_assets.finished_step import FinishedStep

NestedTypes = dict[str, pa.DataType | None]
_NO_TYPE = (pa.ArrowException, UnicodeEncodeError, OverflowError, ValueError, TypeError)


def nested_types(step: FinishedStep, columns: Mapping[str, str]) -> NestedTypes:
    """For each JSON column the Arrow type that holds all of its values exactly, or None.

    None is for mixed types, objects whose keys differ from row to row, and integers beyond 64 bits. Reads
    the rows twice where there is such a column.
    """
    names = [name for name, kind in columns.items() if kind == "json"]
    found: NestedTypes = dict.fromkeys(names, pa.null())
    for table in _json_tables(step, names):
        for name in _open(found):
            found[name] = _both(found[name], _type_of(values_of(table, name)))
    found = {name: None if kind is None else _without_null(kind) for name, kind in found.items()}
    for table in _json_tables(step, _open(found)):
        for name in _open(found):
            if not _holds(found[name], values_of(table, name)):
                found[name] = None
    return found


def with_nested(table: pa.Table, types: Mapping[str, pa.DataType | None]) -> pa.Table:
    """The table with its JSON columns as these types, or as plain text."""
    schema = nested_schema(table.schema, types)
    arrays = []
    for field in schema:
        kind = types.get(field.name)
        column = table[field.name]
        arrays.append(column if kind is None else pa.array(values_of(table, field.name), kind))
    return pa.Table.from_arrays(arrays, schema=schema)


def nested_schema(schema: pa.Schema, types: Mapping[str, pa.DataType | None]) -> pa.Schema:
    """The columns of such a table."""
    return pa.schema([pa.field(field.name, types.get(field.name) or field.type) for field in schema])


def _json_tables(step: FinishedStep, names: Sequence[str]) -> Iterable[pa.Table]:
    columns: Schema = dict.fromkeys(names, "json")
    return step.kept.tables(columns) if names else ()


def _open(found: NestedTypes) -> list[str]:
    return [name for name, kind in found.items() if kind is not None]


def _type_of(values: Sequence[object]) -> pa.DataType | None:
    try:
        return pa.infer_type(values)
    except _NO_TYPE:
        return None


def _both(first: pa.DataType | None, second: pa.DataType | None) -> pa.DataType | None:
    if first is None or second is None:
        return None
    schemas = [pa.schema([("value", kind)]) for kind in (first, second)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("value").type
    except _NO_TYPE:
        return None


def _without_null(kind: pa.DataType) -> pa.DataType:
    """The type with text in the place of what is null everywhere, for not every reader knows that type."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_null(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_null(field.type)) for field in kind])
    return kind


def _holds(kind: pa.DataType | None, values: Sequence[object]) -> bool:
    try:
        return _same(pa.array(values, kind).to_pylist(), list(values))
    except _NO_TYPE:
        return False


def _same(found: object, value: object) -> bool:
    """Whether two JSON values are equal and of equal types; the order of keys does not count."""
    if type(found) is not type(value):
        return False
    if isinstance(found, dict) and isinstance(value, dict):
        return found.keys() == value.keys() and all(_same(found[key], value[key]) for key in found)
    if isinstance(found, list) and isinstance(value, list):
        return len(found) == len(value) and all(map(_same, found, value))
    return found == value
