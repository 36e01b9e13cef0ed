"""The five column types: exact values, canonical JSON text, widening, and the content hash."""

import itertools
import json
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.batch import (
    ColumnType,
    Schema,
    arrow_field,
    arrow_schema,
    column_of,
    column_type,
    conform,
    content_hash,
    infer_type,
    json_text,
    json_value,
    places_where,
    rows_of,
    schema_of,
    table_of,
    values_of,
    widen,
    widen_schema,
)
from dataflow_assets_tests.io.tables import json_values, tables

moderate = settings(deadline=None, max_examples=100)
KINDS: list[ColumnType] = ["string", "int64", "float64", "bool", "json"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_tells_its_column_type(kind: ColumnType) -> None:
    assert column_type(arrow_field("a", kind)) == kind
    assert schema_of(arrow_schema({"a": kind, "b": "bool"})) == {"a": kind, "b": "bool"}


@pytest.mark.parametrize(
    "foreign", [pa.string(), pa.int32(), pa.float32(), pa.binary(), pa.list_(pa.int64())], ids=str
)
def test_a_foreign_arrow_type_is_no_column_type(foreign: pa.DataType) -> None:
    with pytest.raises(KeyError, match=r"column 'a' has the Arrow type"):
        column_type(pa.field("a", foreign))
    with pytest.raises(KeyError):
        column_type(pa.field("a", foreign, metadata={b"dataflow:json": b"1"}))


@moderate
@given(value=json_values)
def test_canonical_text_is_canonical(value: object) -> None:
    text = json_text(value)
    assert json_text(json_value(text)) == text
    assert json.loads(text) == json.loads(json.dumps(value))
    text.encode()


TEXTS = [
    ({"b": 1, "a": [1, 2.0, None, True]}, '{"b":1,"a":[1,2.0,null,true]}'),
    (10**30, "1" + "0" * 30),
    (-(2**63), "-9223372036854775808"),
    ("é数😀\u2028", '"é数😀\u2028"'),
    ("\ud800", '"\\ud800"'),
    ("\ud83d\ude00", '"😀"'),
    (["\ud83d\ude00", "\ud800"], '["\\ud83d\\ude00","\\ud800"]'),
    ((1, (2,)), "[1,[2]]"),
    ({1: 2}, '{"1":2}'),
    (-0.0, "-0.0"),
    ("a\nb\x00", '"a\\nb\\u0000"'),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=lambda value: ascii(value)[:30])
def test_json_text(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "around", [lambda x: x, lambda x: [1, [x]], lambda x: {"a": (x,)}, lambda x: [10**30, x]]
)
def test_json_text_refuses_nan_and_infinity(number: float, around) -> None:
    with pytest.raises(ValueError, match=r"NaN|JSON compliant"):
        json_text(around(number))


def test_json_text_of_deep_values() -> None:
    value: object = None
    for _ in range(500):
        value = [value]
    assert json_text(value) == "[" * 500 + "null" + "]" * 500
    assert json_text(json_value(json_text(value))) == json_text(value)


INFERRED = [
    ([], None),
    ([None], None),
    (["007", None], "string"),
    ([3, None], "int64"),
    ([1.0, 2.5], "float64"),
    ([math.nan], "float64"),
    ([True, False], "bool"),
    ([1, True], "json"),
    ([1, 1.0], "json"),
    ([1, "1"], "json"),
    ([2**63 - 1, -(2**63)], "int64"),
    ([2**63], "json"),
    ([-(2**63) - 1, None], "json"),
    (["a", "\ud800"], "json"),
    ([[]], "json"),
    ([{"a": 1}, None], "json"),
]


@pytest.mark.parametrize(("values", "kind"), INFERRED, ids=lambda value: ascii(value)[:30])
def test_infer_type_takes_the_narrowest_type_and_guesses_nothing(
    values: list, kind: ColumnType | None
) -> None:
    assert infer_type(values) == kind
    if kind is not None:
        read = values_of(table_of({"a": values}, {"a": kind}), "a")
        assert list(map(repr, read)) == list(map(repr, values))


def test_column_of_refuses_what_does_not_fit() -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        column_of(["a"], "int64")
    with pytest.raises(UnicodeEncodeError):
        column_of(["\ud800"], "string")


def test_rows_are_python_values_and_null_is_none() -> None:
    table = table_of({"row_id": ["1", "2"], "j": [{"a": 10**30}, None]}, {"row_id": "string", "j": "json"})
    assert rows_of(table) == [{"row_id": "1", "j": {"a": 10**30}}, {"row_id": "2", "j": None}]
    assert rows_of(table.slice(0, 0)) == []


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_widening_keeps_equal_types_and_else_takes_json(kind: ColumnType | None) -> None:
    assert widen(kind, kind) == kind
    assert widen(kind, None) == widen(None, kind) == kind
    assert widen(kind, "json") == "json"


def test_a_widened_schema_has_all_columns_first_seen_first() -> None:
    schemas: list[dict[str, ColumnType | None]] = [
        {"a": "int64", "b": None},
        {"c": "bool", "a": "float64"},
        {"b": "string"},
    ]
    assert list(widen_schema(schemas).items()) == [("a", "json"), ("b", "string"), ("c", "bool")]


def test_conform_gives_missing_columns_as_null_and_narrow_ones_as_json() -> None:
    table = table_of({"a": [1, None], "b": ["x", "y"]}, {"a": "int64", "b": "string"})
    wide = conform(table, {"c": "bool", "b": "json", "a": "json"})
    assert schema_of(wide) == {"c": "bool", "b": "json", "a": "json"}
    assert rows_of(wide) == [{"c": None, "b": "x", "a": 1}, {"c": None, "b": "y", "a": None}]
    assert wide["a"].to_pylist() == ["1", None]


def test_conform_gives_a_column_of_nulls_any_type() -> None:
    table = table_of({"a": [None, None]}, {"a": "json"})
    assert conform(table, {"a": "int64"})["a"].to_pylist() == [None, None]


@moderate
@given(table=tables(non_finite=True), cuts=st.lists(st.integers(0, 4), max_size=3))
def test_the_content_hash_does_not_see_chunks_and_slices(table: pa.Table, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    parts = [table.slice(begin, end - begin) for begin, end in itertools.pairwise(edges)]
    assert content_hash(pa.concat_tables(parts)) == content_hash(table)
    assert content_hash(pa.concat_tables([table, table]).slice(table.num_rows)) == content_hash(table)


def test_the_content_hash_is_that_of_1_0() -> None:
    table = table_of({"row_id": ["1", "é"], "n": [1, None]}, {"row_id": "string", "n": "int64"})
    assert content_hash(table) == "bce102de5a331bf6b36148ed4b02821a"


SCHEMA: Schema = {"row_id": "string", "n": "int64", "x": "float64", "b": "bool", "j": "json"}
COLUMNS: dict[str, list] = {
    "row_id": ["1", "", None],
    "n": [1, 0, None],
    "x": [0.0, 1.5, None],
    "b": [True, False, None],
    "j": [[1], "", None],
}
CHANGES = {
    "row_id": [["1", None, None], ["1", "", ""], ["", "1", None], ["1", " ", None], ["1", "\0", None]],
    "n": [[1, None, None], [1, 0, 0], [0, 1, None], [1, 0, 1]],
    "x": [
        [-0.0, 1.5, None],
        [0.0, 1.5, 0.0],
        [0.0, math.nan, None],
        [0.0, 1.5000000000000002, None],
        [None, 1.5, None],
    ],
    "b": [[True, None, None], [True, False, False], [False, True, None]],
    "j": [[[1.0], "", None], [[1], None, None], [[2], "", None]],
}


@pytest.mark.parametrize(
    ("name", "values"), [(name, new) for name in CHANGES for new in CHANGES[name]], ids=str
)
def test_every_changed_value_changes_the_content_hash(name: str, values: list) -> None:
    changed = table_of({**COLUMNS, name: values}, SCHEMA)
    assert content_hash(changed) != content_hash(table_of(COLUMNS, SCHEMA))


def test_order_names_types_and_counts_change_the_content_hash() -> None:
    table = table_of(COLUMNS, SCHEMA)
    others = [
        table.slice(0, 2),
        table.take([1, 0, 2]),
        table.select(["n", "row_id", "x", "b", "j"]),
        table.select(["row_id", "n", "x", "b"]),
        table.rename_columns(["row_id", "m", "x", "b", "j"]),
        table.slice(0, 0),
        table.replace_schema_metadata().cast(arrow_schema({**SCHEMA, "j": "string"})),
        pa.concat_tables([table, table.slice(0, 1)]),
    ]
    assert len({content_hash(other) for other in [table, *others]}) == len(others) + 1


def test_text_that_moves_between_neighbours_changes_the_content_hash() -> None:
    schema: Schema = {"a": "string", "b": "string"}
    tables = [table_of({"a": a, "b": b}, schema) for a, b in [(["xy", ""], ["", ""]), (["x", "y"], ["", ""])]]
    tables.append(table_of({"a": ["x", ""], "b": ["y", ""]}, schema))
    assert len(set(map(content_hash, tables))) == 3


def test_all_nan_are_one_value() -> None:
    tables = [table_of({"x": [value, 1.0]}, {"x": "float64"}) for value in (math.nan, -math.nan)]
    assert content_hash(tables[0]) == content_hash(tables[1])


@moderate
@given(first=tables(), second=tables())
def test_two_tables_have_one_hash_only_if_they_are_equal(first: pa.Table, second: pa.Table) -> None:
    same = schema_of(first) == schema_of(second) and list(map(repr, rows_of(first))) == list(
        map(repr, rows_of(second))
    )
    assert (content_hash(first) == content_hash(second)) == (
        same and first.column_names == second.column_names
    )


@pytest.mark.parametrize("chunks", [[], [[]], [[False, True], [], [True]]])
def test_places_of_a_column_however_it_is_cut(chunks: list[list[bool]]) -> None:
    mask = pa.chunked_array([pa.array(each, pa.bool_()) for each in chunks], pa.bool_())
    assert places_where(mask).to_pylist() == [n for n, each in enumerate(mask.to_pylist()) if each]
