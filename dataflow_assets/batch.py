"""The unit that flows: rows as a `pyarrow.Table` with five column types, none of them guessed.

A column is `string`, `int64`, `float64`, `bool` or `json`. `json` is for nested and mixed
values: the canonical JSON text in a string column whose field carries the metadata
`dataflow:json`, so that every format gives back exactly the value that came in. A top-level
null and a missing key are one thing: null. Strings are `large_string`, so that no column
overflows its offsets.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataflow_assets.errors import UnwritableValue

ROW_ID = "row_id"
ColumnType = Literal["string", "int64", "float64", "bool", "json"]
Schema = dict[str, ColumnType]
type_of_json = {b"dataflow:json": b"1"}

_ARROW: dict[ColumnType, pa.DataType] = {
    "string": pa.large_string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "json": pa.large_string(),
}
_BY_PYTHON: dict[type, ColumnType] = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
}
_EMPTY = {pa.large_string(): "", pa.int64(): 0, pa.float64(): 0.0, pa.bool_(): False}
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)


class Batch(NamedTuple):
    """Rows of one step and one partition: `table` has one line a row and a `row_id` column."""

    key: str
    table: pa.Table


def arrow_field(name: str, kind: ColumnType) -> pa.Field:
    """The Arrow field of a column of this type."""
    return pa.field(name, _ARROW[kind], metadata=type_of_json if kind == "json" else None)


def arrow_schema(schema: Mapping[str, ColumnType]) -> pa.Schema:
    """The Arrow schema of these columns, in their order."""
    return pa.schema([arrow_field(name, kind) for name, kind in schema.items()])


def column_type(field: pa.Field) -> ColumnType:
    """The column type of an Arrow field of ours. Raises KeyError for a foreign Arrow type."""
    for kind, arrow in _ARROW.items():
        if field.type.equals(arrow):
            is_json = kind == "string" and b"dataflow:json" in (field.metadata or {})
            return "json" if is_json else kind
    raise KeyError(f"column {field.name!r} has the Arrow type {field.type}")


def schema_of(table: pa.Table | pa.Schema) -> Schema:
    """The columns of a table and their types, in order."""
    fields = table.schema if isinstance(table, pa.Table) else table
    return {field.name: column_type(field) for field in fields}


def json_text(value: object) -> str:
    r"""The canonical JSON text of a value: no spaces, keys in their order, exact integers.

    Lone surrogates come out as `\udXXX` escapes. `json_text(json_value(text))` is `text` again.
    Raises ValueError for NaN and infinity, TypeError for what JSON does not have.
    """
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, UnicodeEncodeError):
        return _strict_dumps(value)
    if "null" in text and _has_non_finite(value):  # orjson writes NaN as null
        raise ValueError("JSON has no NaN or infinity")
    return text


def _strict_dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    # two halves of a surrogate pair side by side, or the keys 1 and "1", come back as one
    again = json.loads(text)
    return text if again == value else json_text(again)


def _has_non_finite(value: object) -> bool:
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, float) and inner - inner != 0.0:
            return True
        if isinstance(inner, dict):
            pending += inner.values()
        elif isinstance(inner, list | tuple):
            pending += inner
    return False


def json_value(text: str) -> object:
    """The value of a canonical JSON text, integers of any size exact."""
    return json.loads(text)


def infer_type(values: Sequence[object]) -> ColumnType | None:
    """The narrowest column type that holds these Python values exactly; None if all are null.

    One Python type alone gives its column type; integers beyond 64 bits, strings that are not
    valid Unicode, containers and mixtures give `json`.
    """
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return None
    if len(kinds) > 1:
        return "json"
    kind = _BY_PYTHON.get(kinds.pop(), "json")
    if kind == "int64" and not _fits_int64(values):
        return "json"
    if kind == "string" and not _is_unicode(values):
        return "json"
    return kind


def _fits_int64(values: Sequence[object]) -> bool:
    numbers = [value for value in values if isinstance(value, int)]
    return min(numbers) >= _INT64_MIN and max(numbers) <= _INT64_MAX


def _is_unicode(values: Sequence[object]) -> bool:
    try:
        pa.array(values, pa.large_string())
    except UnicodeEncodeError:
        return False
    return True


def column_of(values: Sequence[object], kind: ColumnType) -> pa.Array:
    """The Arrow array of these Python values as a column of this type.

    Raises pyarrow.ArrowInvalid, pyarrow.ArrowTypeError or UnicodeEncodeError where a value
    does not fit; `json` holds every JSON value.
    """
    if kind == "json":
        values = [None if value is None else json_text(value) for value in values]
    return pa.array(values, _ARROW[kind])


def values_of(table: pa.Table, name: str) -> list:
    """The Python values of a column, JSON text decoded."""
    column = table[name].to_pylist()
    if column_type(table.schema.field(name)) != "json":
        return column
    return [None if text is None else json_value(text) for text in column]


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """The rows as dicts of Python values, JSON decoded."""
    columns = {name: values_of(table, name) for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def table_of(columns: Mapping[str, Sequence[object]], schema: Mapping[str, ColumnType]) -> pa.Table:
    """A table of these columns of Python values, with the types of `schema`."""
    arrays = [column_of(columns[name], kind) for name, kind in schema.items()]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def widen(first: ColumnType | None, second: ColumnType | None) -> ColumnType | None:
    """The narrowest type that holds both exactly: the same type, or `json`. None is null only."""
    if first is None or second is None or first == second:
        return first or second
    return "json"


def same_columns(first: Mapping[str, ColumnType], second: Mapping[str, ColumnType]) -> bool:
    """Whether both have the same columns of the same types in the same order, which files keep."""
    return list(first.items()) == list(second.items())


def widen_schema(schemas: Iterable[Mapping[str, ColumnType | None]]) -> dict[str, ColumnType | None]:
    """The columns of all schemas, each with the narrowest type that holds all; first seen first."""
    union: dict[str, ColumnType | None] = {}
    for schema in schemas:
        for name, kind in schema.items():
            union[name] = widen(union.get(name), kind)
    return union


def with_column(table: pa.Table, name: str, kind: ColumnType, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with this column, in the place of one of the same name, else at the end."""
    field, index = arrow_field(name, kind), table.schema.get_field_index(name)
    return table.append_column(field, values) if index < 0 else table.set_column(index, field, values)


def finite_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers of a column as float64, without nulls, NaN and infinities."""
    numbers = pc.cast(column, pa.float64(), safe=False)
    return numbers.filter(pc.is_finite(numbers))


def conform(table: pa.Table, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The same rows with exactly these columns: missing ones null, narrower ones as JSON.

    A column of the table that `schema` lacks is dropped, so pass a schema that was widened over this
    table. Raises UnwritableValue where a column with NaN or infinity has to become JSON.
    """
    arrays = []
    there = set(table.column_names)  # asked of the table, the list is made anew for each column
    for name, kind in schema.items():
        if name not in there:
            arrays.append(pa.nulls(table.num_rows, _ARROW[kind]))
        else:
            arrays.append(_converted(table, name, kind))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _converted(table: pa.Table, name: str, kind: ColumnType) -> pa.ChunkedArray | pa.Array:
    column = table[name]
    if column.null_count == len(column):
        return pa.nulls(len(column), _ARROW[kind])
    if column_type(table.schema.field(name)) == kind:
        return column
    try:
        return column_of(values_of(table, name), kind)
    except ValueError as error:
        raise UnwritableValue(
            f"column {name!r} holds different types, so it becomes JSON, and NaN or infinity, which JSON has "
            "not; leave such rows out of the source, or give the column one type"
        ) from error


def packed(table: pa.Table) -> bytes:
    """The table as one Arrow IPC stream, without the rest of the buffers that it is a slice of."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def unpacked(data: bytes) -> pa.Table:
    """The table that was packed."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def places_where(mask: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The places at which the mask is true, as unsigned integers.

    `pc.indices_nonzero` of pyarrow 25 ends the process where a column has no chunks.
    """
    return pc.indices_nonzero(mask) if len(mask) else pa.array([], pa.uint64())


def content_hash(table: pa.Table) -> str:
    """A 128-bit hash of the rows: column names, types and values in order.

    The same for every format, chunking and slice offset, so that a batch that was stored in
    another format or read from another place is still the same batch. All NaN are one value;
    0.0 and -0.0 are two.
    """
    digest = xxhash.xxh3_128()
    for field, column in zip(table.schema, table.columns, strict=True):
        name = field.name.encode()
        digest.update(b"%d %b %b %d\0" % (len(name), name, column_type(field).encode(), len(column)))
        _hash_column(digest, column)
    return digest.hexdigest()


def column_hash(column: pa.ChunkedArray) -> str:
    """A 128-bit hash of a column's type and values in order, as `content_hash` has of a table's."""
    digest = xxhash.xxh3_128(b"%b %d\0" % (str(column.type).encode(), len(column)))
    _hash_column(digest, column)
    return digest.hexdigest()


def _hash_column(digest: "xxhash.xxh3_128", column: pa.ChunkedArray) -> None:
    """Feeds a column in a canonical form: null mask, lengths, then the data without gaps."""
    if column.null_count:
        digest.update(b"nulls")
        digest.update(_bytes_of_fixed(column.is_null(), pa.uint8()))
        column = pc.fill_null(column, _EMPTY[column.type])
    if pa.types.is_large_string(column.type):
        digest.update(_bytes_of_fixed(pc.binary_length(column), pa.int64()))
        for chunk in column.chunks:
            digest.update(_string_data(chunk))
        return
    if pa.types.is_floating(column.type) and pc.any(column.is_nan()).as_py():
        column = pc.if_else(column.is_nan(), math.nan, column)
    kind = pa.uint8() if pa.types.is_boolean(column.type) else column.type
    for chunk in column.chunks:
        digest.update(_bytes_of_fixed(chunk, kind))


def _bytes_of_fixed(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> memoryview:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array if array.type == kind else array.cast(kind)
    width = kind.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is None:
        return memoryview(b"")
    return memoryview(buffer)[array.offset * width : (array.offset + len(array)) * width]


def _string_data(chunk: pa.Array) -> memoryview:
    _, offsets, data = chunk.buffers()
    if data is None or not len(chunk):
        return memoryview(b"")
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[chunk.offset] : ends[chunk.offset + len(chunk)]]
