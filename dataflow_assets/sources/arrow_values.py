"""Foreign Arrow arrays to the five column types of `batch.py`, exactly.

Text stays text, integers become int64 (uint64 beyond it: json), floats float64, dates and times
ISO 8601 text (instants in UTC), durations ISO 8601 text, decimals text, lists, structs and maps json.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dataflow_assets.batch import ColumnType
from dataflow_assets.sources.columns import UnfitRows, careful_json_array, json_array

_UTC_AND_NOTHING = (pa.scalar("+00:00", pa.large_string()), pa.scalar("", pa.large_string()))
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class UnreadableType(Exception):
    """An Arrow type that has no column type; the message says which part of it."""


def check_type(kind: pa.DataType) -> None:
    """Raises UnreadableType for types that `column_of_arrow` cannot convert."""
    kind = _plain_type(kind)
    if _is_binary(kind):
        raise UnreadableType("binary data is no text")
    for inner in _inner_types(kind):
        check_type(inner)
    if not (_inner_types(kind) or pt.is_struct(kind) or _converter(kind)):
        raise UnreadableType(f"{kind} has no exact form here")


def column_of_arrow(array: pa.Array) -> tuple[pa.Array, ColumnType | None]:
    """The array as a column and its type, None where all are null. Raises UnfitRows."""
    array = _plain(array)
    if array.null_count == len(array):
        return pa.nulls(len(array)), None
    convert = _converter(array.type)
    return convert(array) if convert else (_json(array), "json")


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary, run-end and extension wrapping."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string() if _is_uuid(kind) else _plain_type(kind.storage_type)
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    return kind


def _plain(array: pa.Array) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        if _is_uuid(array.type):
            return pa.array(
                [None if value is None else str(value) for value in array.to_pylist()], pa.string()
            )
        return _plain(array.storage)
    if pt.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if pt.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array))
    return array


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _is_binary(kind: pa.DataType) -> bool:
    return (
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_binary_view(kind)
    )


def _is_string(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _is_list(kind: pa.DataType) -> bool:
    return (
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def _inner_types(kind: pa.DataType) -> list[pa.DataType]:
    if pt.is_map(kind):
        return [kind.key_type, kind.item_type]
    if _is_list(kind):
        return [kind.value_type]
    if pt.is_struct(kind):
        return [kind.field(place).type for place in range(kind.num_fields)]
    return []


def _converter(kind: pa.DataType) -> Callable[[pa.Array], tuple[pa.Array, ColumnType]] | None:
    """How arrays of a flat type become a column; None for nested and unknown types."""
    for fits, convert in _CONVERTERS:
        if fits(kind):
            return convert
    return None


def _from_strings(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        if reasons := _invalid_texts(array):
            raise UnfitRows(reasons) from None
        raise
    return array.cast(pa.large_string()), "string"


def _invalid_texts(array: pa.Array) -> dict[int, str]:
    reasons = {}
    for position, value in enumerate(array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()):
        try:
            _ = value is None or value.decode()
        except UnicodeDecodeError:
            reasons[position] = "invalid UTF-8"
    return reasons


def _from_integers(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    try:
        return array.cast(pa.int64()), "int64"
    except pa.ArrowInvalid:
        return json_array(array.to_pylist()), "json"


def _from_floats(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    return array.cast(pa.float64()), "float64"


def _from_booleans(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    return array, "bool"


def _from_dates(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    return _in_range(array.cast(pa.date32()).cast(pa.large_string())), "string"


def _from_times(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    return array.cast(pa.large_string()), "string"


def _from_timestamps(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    """`2024-01-05T10:00:00.000`; instants in UTC with `+00:00`. As many digits as the unit has."""
    texts = _in_range(array.cast(pa.timestamp(array.type.unit)).cast(pa.large_string()))
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    if array.type.tz is not None:
        texts = pc.binary_join_element_wise(texts, *_UTC_AND_NOTHING)
    return texts.cast(pa.large_string()), "string"


def _in_range(texts: pa.Array) -> pa.Array:
    """The same texts. Raises UnfitRows where Arrow could not write a date."""
    beyond = pc.fill_null(pc.starts_with(texts, "<"), False).to_pylist()
    if any(beyond):
        reason = "a date beyond the years that can be written"
        raise UnfitRows({position: reason for position, odd in enumerate(beyond) if odd})
    return texts


def _from_durations(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    unit = array.type.unit
    texts = [
        None if ticks is None else _iso_duration(ticks, unit) for ticks in array.cast(pa.int64()).to_pylist()
    ]
    return pa.array(texts, pa.large_string()), "string"


def _iso_duration(ticks: int, unit: str) -> str:
    seconds, rest = divmod(abs(ticks), _PER_SECOND[unit])
    digits = len(str(_PER_SECOND[unit])) - 1
    fraction = f".{rest:0{digits}d}" if digits else ""
    return f"{'-' if ticks < 0 else ''}PT{seconds}{fraction}S"


def _from_decimals(array: pa.Array) -> tuple[pa.Array, ColumnType]:
    texts = [None if value is None else format(value, "f") for value in array.to_pylist()]
    return pa.array(texts, pa.large_string()), "string"


_CONVERTERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], tuple[pa.Array, ColumnType]]]] = [
    (_is_string, _from_strings),
    (pt.is_integer, _from_integers),
    (pt.is_floating, _from_floats),
    (pt.is_boolean, _from_booleans),
    (pt.is_date, _from_dates),
    (pt.is_time, _from_times),
    (pt.is_timestamp, _from_timestamps),
    (pt.is_duration, _from_durations),
    (pt.is_decimal, _from_decimals),
    (pt.is_null, _from_booleans),
]


def _json(array: pa.Array) -> pa.Array:
    """The JSON texts of a nested array: objects of structs, arrays of lists, both for maps."""
    values = _python_values(array)
    return json_array(values) if _is_finite(array) else careful_json_array(values)


def _is_finite(array: pa.Array) -> bool:
    """Whether no float anywhere inside is NaN or infinite."""
    array = _plain(array)
    if pt.is_floating(array.type):
        return pc.all(pc.is_finite(array.cast(pa.float64())), min_count=0).as_py() is not False
    if pt.is_map(array.type):
        return _is_finite(array.keys) and _is_finite(array.items)
    if _is_list(array.type):
        return _is_finite(array.flatten())
    if pt.is_struct(array.type):
        return all(map(_is_finite, array.flatten()))
    return True


def _python_values(array: pa.Array) -> list[Any]:
    """The values as JSON has them: at once where every part is native to it, else part by part."""
    array = _plain(array)
    if _is_native(array.type):
        return array.to_pylist()
    if pt.is_map(array.type):
        return [_object_or_pairs(pairs) for pairs in _grouped(array, _pairs(array))]
    if _is_list(array.type):
        return _grouped(array, _python_values(array.flatten()))
    if pt.is_struct(array.type):
        parts = zip(*map(_python_values, array.flatten()), strict=True)
        names = [array.type.field(place).name for place in range(array.type.num_fields)]
        valid = array.is_valid().to_pylist()
        return [
            dict(zip(names, row, strict=True)) if here else None
            for row, here in zip(parts, valid, strict=True)
        ]
    return column_of_arrow(array)[0].to_pylist()


def _objects(array: pa.Array) -> list[dict[str, Any] | None]:
    names = [array.type.field(place).name for place in range(array.type.num_fields)]
    rows = zip(*map(_python_values, array.flatten()), strict=True)
    valid = array.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if here else None for row, here in zip(rows, valid, strict=True)
    ]


def _is_native(kind: pa.DataType) -> bool:
    """Whether `to_pylist` alone gives what JSON has."""
    inner = _inner_types(kind)
    if pt.is_map(kind) or isinstance(kind, pa.BaseExtensionType):
        return False
    if inner:
        return all(map(_is_native, inner))
    return (
        _is_string(kind)
        or pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_boolean(kind)
        or pt.is_null(kind)
    )


def _pairs(array: pa.Array) -> list[list[Any]]:
    """Key and value of every entry of the non-null maps, in order."""
    entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field]))).flatten()
    return [list(pair) for pair in zip(*map(_python_values, entries.flatten()), strict=True)]


def _grouped(array: pa.Array, flat: list[Any]) -> list[Any]:
    """The values of all lists, `flat`, as one list for each element of `array`; null where it is null."""
    lengths = _lengths(array)
    groups, start = [], 0
    for length in lengths:
        groups.append(None if length is None else flat[start : start + length])
        start += length or 0
    return groups


def _lengths(array: pa.Array) -> list[int | None]:
    if pt.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    return pc.list_value_length(array).to_pylist()


def _object_or_pairs(pairs: list[list[Any]] | None) -> object:
    """An object where all keys are different texts, else the list of pairs."""
    if pairs is None:
        return None
    keys = [key for key, _ in pairs]
    if all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys):
        return dict(pairs)
    return pairs
