"""The files are what other readers expect: json, csv and pickle of the standard library, pandas, Parquet."""

import csv
import io
import json
import pickle
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given, settings

from dataflow_assets.batch import Schema, rows_of, schema_of, table_of
from dataflow_assets.io.formats import encode
from dataflow_assets_tests.io.tables import tables

SCHEMA: Schema = {
    "row_id": "string",
    "text": "string",
    "n": "int64",
    "x": "float64",
    "b": "bool",
    "j": "json",
}
COLUMNS = {
    "row_id": ["1", "2"],
    "text": ['say "hi",\n数据', None],
    "n": [2**63 - 1, -1],
    "x": [1.0, 1e-7],
    "b": [True, False],
    "j": [{"a": [1, None, "é"]}, None],
}
TABLE = table_of(COLUMNS, SCHEMA)


def typed(value: object) -> object:
    """The value with its types, as 1, 1.0 and True are equal."""
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    return [typed(inner) for inner in value] if isinstance(value, list) else (type(value), repr(value))


@settings(deadline=None, max_examples=100)
@given(table=tables())
def test_jsonl_is_one_json_object_a_line(table: pa.Table) -> None:
    lines = bytes(encode(table, "jsonl")).decode().split("\n")
    assert lines.pop() == ""
    assert typed([json.loads(line) for line in lines]) == typed(rows_of(table))
    assert all(list(json.loads(line)) == table.column_names for line in lines)


@settings(deadline=None, max_examples=100)
@given(table=tables())
def test_json_is_one_array(table: pa.Table) -> None:
    assert typed(json.loads(bytes(encode(table, "json")))) == typed(rows_of(table))


@settings(deadline=None, max_examples=100)
@given(table=tables())
def test_pickle_is_a_list_of_dicts(table: pa.Table) -> None:
    assert typed(pickle.loads(bytes(encode(table, "pickle")))) == typed(rows_of(table))


@settings(deadline=None, max_examples=100)
@given(table=tables())
def test_csv_is_what_the_csv_module_reads(table: pa.Table) -> None:
    text = bytes(encode(table, "csv")).decode()
    assume(sys.version_info >= (3, 11) or "\0" not in text)  # before 3.11 the module refuses NUL
    rows = list(csv.reader(io.StringIO(text, newline="")))
    strings = [name for name, kind in schema_of(table).items() if kind in ("string", "json")]
    assert rows[0] == table.column_names
    found = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    for name in strings:
        assert [row[name] for row in found] == [text or "" for text in table[name].to_pylist()]


def test_jsonl_bytes() -> None:
    assert bytes(encode(TABLE, "jsonl")).decode() == (
        '{"row_id":"1","text":"say \\"hi\\",\\n数据","n":9223372036854775807,"x":1.0,"b":true,'
        '"j":{"a":[1,null,"é"]}}\n'
        '{"row_id":"2","text":null,"n":-1,"x":1e-7,"b":false,"j":null}\n'
    )


def test_json_bytes() -> None:
    assert encode(TABLE.select(["row_id", "j"]), "json") == (
        '[\n{"row_id":"1","j":{"a":[1,null,"é"]}},\n{"row_id":"2","j":null}\n]\n'.encode()
    )
    assert encode(TABLE.slice(0, 0), "json") == b"[\n]\n"


def test_csv_bytes() -> None:
    assert encode(TABLE, "csv").decode() == (
        "row_id,text,n,x,b,j\n"
        '1,"say ""hi"",\n数据",9223372036854775807,1.0,true,"{""a"":[1,null,""é""]}"\n'
        "2,,-1,1e-7,false,\n"
    )


def test_csv_keeps_null_and_the_empty_text_apart() -> None:
    table = table_of({"row_id": ["1", "2"], "s": [None, ""]}, {"row_id": "string", "s": "string"})
    assert encode(table, "csv") == b'row_id,s\n1,\n2,""\n'


def test_pandas_reads_csv_and_parquet_with_sensible_columns() -> None:
    for frame in (
        pd.read_csv(io.BytesIO(encode(TABLE, "csv"))),
        pd.read_parquet(io.BytesIO(encode(TABLE, "parquet"))),
    ):
        assert list(frame.columns) == list(SCHEMA)
        assert frame["text"][0] == COLUMNS["text"][0]
        assert frame["n"].tolist() == COLUMNS["n"]
        assert frame["x"].tolist() == COLUMNS["x"]
        assert frame["b"].tolist() == COLUMNS["b"]
        assert json.loads(frame["j"][0]) == COLUMNS["j"][0]


def test_parquet_has_plain_columns_and_no_metadata() -> None:
    file = pq.ParquetFile(pa.BufferReader(encode(TABLE, "parquet")))
    assert file.metadata.metadata is None
    assert [str(field.type) for field in file.schema_arrow] == [
        "string",
        "string",
        "int64",
        "double",
        "bool",
        "string",
    ]
    assert file.metadata.row_group(0).column(1).compression == "UNCOMPRESSED"
