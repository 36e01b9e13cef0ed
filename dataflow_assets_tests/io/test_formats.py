"""Every format gives back exactly the table that was encoded."""

from typing import get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings

from dataflow_assets.batch import content_hash, schema_of, table_of
from dataflow_assets.io.formats import EXTENSIONS, Format, decode, encode
from dataflow_assets_tests.io.tables import tables

FORMATS = get_args(Format)
NON_FINITE = ("csv", "parquet", "pickle")
every_format = pytest.mark.parametrize("format", FORMATS)


def back(table: pa.Table, format: Format) -> pa.Table:
    return decode(encode(table, format), format, schema_of(table), allow_pickle=True)


def assert_comes_back(table: pa.Table, format: Format) -> None:
    read = back(table, format)
    read.validate(full=True)
    assert read.schema.equals(table.schema, check_metadata=True)
    assert read.equals(table)
    assert content_hash(read) == content_hash(table)
    assert bytes(encode(read, format)) == bytes(encode(table, format))


@every_format
@settings(deadline=None, max_examples=150)
@given(table=tables())
def test_every_table_comes_back_exactly(format: Format, table: pa.Table) -> None:
    assert_comes_back(table, format)


@pytest.mark.parametrize("format", NON_FINITE)
@settings(deadline=None, max_examples=60)
@given(table=tables(non_finite=True))
def test_nan_and_infinity_come_back_where_the_format_has_them(format: Format, table: pa.Table) -> None:
    assert content_hash(back(table, format)) == content_hash(table)


STRINGS = [
    "", " ", " a", "a ", "\t", "\n", "\r", "\r\n", "a\rb", '"', '""', "'", "\\", '\\"', ",", ";", "a,b",
    "null", "None", "NULL", "nan", "NaN", "N/A", "#N/A", "inf", "true", "True", "false",
    "007", "1", "1.0", "1e5", "-0", "0x10", "12345678901234567890", "2020-01-01", "2020-01-01T00:00:00Z",
    "12:30:45", "2020-01-01 00:00:00", "1970-01-01T00:00:00.000001", "[]", "{}", '{"a":1}', "=1+1", "@x", "-",
    "\x00", "a\x00b", "\x01", "\x1b[0m", "\x7f", "\x80", "\x85", "\u2028", "\u2029", "\ufeff", "\ufeffa",
    "\ufffd", "\uffff", "\U0010ffff", "é", "e\u0301", "数据", "😀", "👩‍👩‍👧", "\\u0041", "\\ud800", "\\n",
    ',"text":', '{"row_id":', '","', "},\n{", "]\n", "a" * 70_000,
]  # fmt: skip


@every_format
@pytest.mark.parametrize("text", STRINGS, ids=lambda text: ascii(text)[:30])
def test_a_string_is_not_reinterpreted(format: Format, text: str) -> None:
    columns = {
        "row_id": ["1", "2", "3"],
        "text": [text, None, text],
        "date": [None, text, ""],
        "j": [text] * 3,
    }
    table = table_of(columns, {"row_id": "string", "text": "string", "date": "string", "j": "json"})
    assert_comes_back(table, format)


JSON_VALUES = [
    {}, [], [[]], {"": {}}, "", "x", 0, -1, 1.0, -0.0, 1e16, 1e-7, 5e-324, True, False, 2**63, 2**64, 10**40,
    -(10**30), [10**30, 0.1], "\ud800", {"\udfff": "a\ud83d"}, ["\ud800", 1e-7], [None], {"a": None},
    [1, "1"],
    {"b": 1}, {"b": {"b": [{"b": "b"}]}}, {"row_id": "x"}, {"j": {"j": 1}}, "null", "\n", ',"b":1',
    {'"': '"'},
    {",": ":"}, [",", ":"], {"x": "}"}, "2020-01-01", {"date": "2020-01-01"}, [[[[[[[[1]]]]]]]], "\\ud800",
    {"a,": 1, "b": 2}, ["a,", "b"], 12345678901234567, 0.1234567890123456,
]  # fmt: skip


@every_format
@pytest.mark.parametrize("value", JSON_VALUES, ids=lambda value: ascii(value)[:30])
def test_a_json_value_keeps_its_text(format: Format, value: object) -> None:
    columns = {"row_id": ["1", "2"], "j": [value, None], "b": [1, 2], "k": [None, value], "l": [value, value]}
    table = table_of(columns, {"row_id": "string", "j": "json", "b": "int64", "k": "json", "l": "json"})
    assert_comes_back(table, format)
    assert_comes_back(table.select(["l", "k", "row_id"]), format)


NAMES = [
    "", " ", "a b", 'a"b', "a,b", "a\nb", "a\rb", "a:b", "\\", "é", "数据", "😀", "*", "^a.*$", "^", "{", "}",
    "[",
    ",", "'", "\x00", "\x7f", "\ufeff", "\ufeffa", "\u2028", "null", "1", "column_0", "index", "struct", "#a",
]  # fmt: skip


@every_format
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_column_may_have_any_name(format: Format, name: str) -> None:
    columns = {name: ["x", None], "row_id": ["1", "2"], "j": [{name: 1}, [name]], f"{name}2": [1.5, None]}
    table = table_of(columns, {name: "string", "row_id": "string", "j": "json", f"{name}2": "float64"})
    assert_comes_back(table, format)
    assert_comes_back(table.select([name]), format)
    assert_comes_back(table.select(["row_id", name]), format)


@every_format
def test_float_bits_survive(format: Format) -> None:
    floats = [
        1e16,
        5e-324,
        0.1,
        -0.0,
        0.0,
        1.0,
        1e22,
        1.7976931348623157e308,
        2.2250738585072014e-308,
        1 / 3,
        None,
    ]
    table = table_of({"row_id": list(map(str, floats)), "x": floats}, {"row_id": "string", "x": "float64"})
    assert list(map(str, back(table, format)["x"].to_pylist())) == list(map(str, floats))


@every_format
def test_nulls_alone_keep_their_column_type(format: Format) -> None:
    kinds = {"row_id": "string", "i": "int64", "x": "float64", "b": "bool", "j": "json", "s": "string"}
    assert_comes_back(table_of({name: [None, None] for name in kinds}, kinds), format)


@every_format
def test_an_empty_table_keeps_its_columns(format: Format) -> None:
    kinds = {"row_id": "string", "i": "int64", "j": "json"}
    assert_comes_back(table_of({name: [] for name in kinds}, kinds), format)


@every_format
def test_a_table_without_columns_comes_back(format: Format) -> None:
    assert_comes_back(table_of({}, {}), format)


@every_format
def test_a_row_larger_than_a_read_block_comes_back(format: Format) -> None:
    columns = {"row_id": ["1", "2", "3"], "text": ["a", "é" * 5_000_000, "b"], "j": [["x" * 5_000_000], 1, 2]}
    table = table_of(columns, {"row_id": "string", "text": "string", "j": "json"})
    assert_comes_back(table, format)
    assert_comes_back(table.select(["row_id", "text"]), format)


@every_format
def test_the_bytes_do_not_depend_on_chunks_and_slices(format: Format) -> None:
    columns = {"row_id": list("abcdef"), "j": [[n] for n in range(6)], "b": [True, None, False] * 2}
    table = table_of(columns, {"row_id": "string", "j": "json", "b": "bool"})
    parts = pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1, 4), table.slice(5)])
    assert bytes(encode(parts, format)) == bytes(encode(table, format))
    assert bytes(encode(table.slice(2, 3), format)) == bytes(encode(table.take([2, 3, 4]), format))


@every_format
def test_columns_come_in_the_order_of_the_schema(format: Format) -> None:
    table = table_of({"row_id": ["1"], "a": [1]}, {"row_id": "string", "a": "int64"})
    read = decode(encode(table, format), format, {"a": "int64", "row_id": "string"}, allow_pickle=True)
    assert read.to_pylist() == [{"a": 1, "row_id": "1"}]
    assert read.column_names == ["a", "row_id"]


def test_every_format_has_its_extension() -> None:
    assert set(EXTENSIONS) == set(FORMATS)
    assert EXTENSIONS["jsonl"] == "jsonl"


def test_parquet_is_cut_into_row_groups_of_64_mib() -> None:
    import pyarrow.parquet as pq

    table = table_of({"row_id": ["x" * (1 << 20)] * 65}, {"row_id": "string"})
    data = encode(table, "parquet")
    assert pq.ParquetFile(pa.BufferReader(data)).num_row_groups == 2
    assert decode(data, "parquet", {"row_id": "string"}).equals(table)


def test_parquet_without_rows_has_no_row_group() -> None:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(encode(table_of({"row_id": []}, {"row_id": "string"}), "parquet")))
    assert (file.num_row_groups, file.schema_arrow.names) == (0, ["row_id"])
