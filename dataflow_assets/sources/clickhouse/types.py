"""How a column of ClickHouse is selected, so that Arrow has its value exactly or as plain text."""

import re
from typing import NamedTuple

from dataflow_assets.batch import ColumnType
from dataflow_assets.clickhouse.connection import quoted

_WRAPPED = re.compile(r"(?:LowCardinality|Nullable)\((.*)\)", re.DOTALL)
_WORD = re.compile(r"[A-Z][A-Za-z0-9]*")
_KINDS: dict[str, ColumnType] = {
    "String": "string",
    "Bool": "bool",
    "Float32": "float64",
    "Float64": "float64",
    **{f"{sign}Int{bits}": "int64" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}
_NESTED = ("Array(", "Map(", "Tuple(", "Nested(")
_AS_JSON = ("JSON", "Object(", "Variant(", "Dynamic")
_KEYS = {"String", "UUID", "Date", "Date32", "FixedString", "DateTime", "DateTime64"}
_INTEGER = re.compile(r"U?Int[0-9]+")


class Reading(NamedTuple):
    """An expression for a column; `as_json` where it gives JSON as text, `kind` where that is sure before."""

    expression: str
    kind: ColumnType | None
    as_json: bool = False


def reading(name: str, sql_type: str) -> Reading:
    """How the column `name` of `source_rows` is read.

    Text, numbers and booleans as they are, and lists, maps and tuples of them; instants in UTC; dates,
    UUIDs, addresses, enums and integers above 64 bits as text; the rest as JSON.
    """
    column = f"source_rows.{quoted(name)}"
    bare = bare_type(sql_type)
    word = bare.partition("(")[0]
    if bare in _KINDS:
        return Reading(column, None if bare == "UInt64" else _KINDS[bare])
    if word in ("DateTime", "DateTime64"):
        digits = re.match(r"DateTime64\((\d+)", bare)
        return Reading(f"toDateTime64({column}, {digits[1] if digits else 0}, 'UTC')", "string")
    if word == "Decimal":
        return Reading(column, "string")
    if bare.startswith(_NESTED):
        inner = set(_WORD.findall(re.sub(r"`(?:[^`\\]|\\.)*`", "", bare)))
        is_plain = inner <= {*_KINDS, "Array", "Map", "Tuple", "Nested", "Nullable", "LowCardinality"}
        if is_plain and not bare.startswith("Tuple("):
            return Reading(column, "json")
    if bare.startswith((*_NESTED, *_AS_JSON)):
        text = f"toJSONString({column})"
        return Reading(f"if(isNull({column}), NULL, {text})", "json", as_json=True)
    return Reading(f"toString({column})", "string")


def bare_type(sql_type: str) -> str:
    """The type without LowCardinality and Nullable."""
    while match := _WRAPPED.fullmatch(sql_type):
        sql_type = match[1]
    return sql_type


def is_key_type(sql_type: str) -> bool:
    """Whether values of the type have one order and one text each."""
    bare = bare_type(sql_type)
    return bare.partition("(")[0] in _KEYS or _INTEGER.fullmatch(bare) is not None


def key_text(column: str, sql_type: str) -> str:
    """An expression for a key, or the highest one, as text that is its own alone; instants in UTC."""
    return f"toString({_in_utc(column, bare_type(sql_type))})"


def key_parameter(sql_type: str) -> str:
    """The type of a parameter that takes such a text."""
    bare = bare_type(sql_type)
    digits = re.match(r"DateTime64\((\d+)", bare)
    if digits:
        return f"DateTime64({digits[1]}, 'UTC')"
    return "DateTime('UTC')" if bare.startswith("DateTime") else bare


def _in_utc(column: str, bare: str) -> str:
    return f"toTimeZone({column}, 'UTC')" if bare.startswith("DateTime") else column
