"""What a format cannot hold is refused by name, and what is no such file is found out."""

import datetime
import pickle
import random
from typing import get_args

import pyarrow as pa
import pytest

from dataflow_assets.batch import Schema, arrow_schema, table_of
from dataflow_assets.errors import ConfigError, CorruptFile, UnwritableValue
from dataflow_assets.io.formats import Format, decode, encode

FORMATS = get_args(Format)
SCHEMA: Schema = {"row_id": "string", "j": "json", "n": "int64", "s": "string", "x": "float64", "b": "bool"}
TABLE = table_of(
    {
        "row_id": ["1", "2", "3"],
        "j": [{"a": [1]}, "\ud800", None],
        "n": [1, None, 3],
        "s": ["x", "", "é"],
        "x": [1.5, -0.0, None],
        "b": [True, None, False],
    },
    SCHEMA,
)
every_format = pytest.mark.parametrize("format", FORMATS)


@pytest.mark.parametrize("format", ["jsonl", "json"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_has_no_nan_and_names_the_row(format: Format, number: float) -> None:
    table = table_of({"row_id": ["a", "b"], "x": [1.0, number]}, {"row_id": "string", "x": "float64"})
    with pytest.raises(
        UnwritableValue, match=rf"column 'x' of row b holds {number}; {format} has no such number"
    ):
        encode(table, format)


@pytest.mark.parametrize("format", ["jsonl", "json", "pickle"])
def test_json_null_is_not_a_text(format: Format) -> None:
    table = pa.table([["a", "b"], ["1", "null"]], schema=arrow_schema({"row_id": "string", "j": "json"}))
    with pytest.raises(UnwritableValue, match="column 'j' of row b holds 'null'"):
        encode(table, format)


@pytest.mark.parametrize("format", ["jsonl", "json"])
def test_json_text_with_a_line_break_would_break_the_lines(format: Format) -> None:
    table = pa.table([["a"], ["[1,\n2]"]], schema=arrow_schema({"row_id": "string", "j": "json"}))
    with pytest.raises(UnwritableValue, match="column 'j' of row a"):
        encode(table, format)


@every_format
def test_two_columns_of_one_name_are_refused(format: Format) -> None:
    table = pa.table([pa.array(["1"], pa.large_string())] * 2, names=["a", "a"])
    with pytest.raises(UnwritableValue, match="two columns have one name"):
        encode(table, format)


@every_format
@pytest.mark.parametrize("array", [pa.array([b"x"]), pa.array([1], pa.int32()), pa.array([[1]])], ids=str)
def test_a_foreign_arrow_type_is_an_error_before_anything_is_written(format: Format, array: pa.Array) -> None:
    with pytest.raises(KeyError, match="column 'a' has the Arrow type"):
        encode(pa.table({"a": array}), format)


def test_a_pickle_is_read_only_where_it_is_allowed_by_name() -> None:
    with pytest.raises(ConfigError, match="allow_pickle: true"):
        decode(encode(TABLE, "pickle"), "pickle", SCHEMA)


@pytest.mark.parametrize("value", [datetime.date(2020, 1, 1), print, ConfigError, 1j, {1, 2}], ids=str)
def test_a_pickle_can_name_no_class_or_function(value: object) -> None:
    data = pickle.dumps([{"row_id": "1", "j": value}])
    with pytest.raises(CorruptFile):
        decode(data, "pickle", {"row_id": "string", "j": "json"}, allow_pickle=True)


class Shout:
    def __reduce__(self) -> tuple:
        return print, ("called",)


def test_reading_a_pickle_calls_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CorruptFile, match=r"builtins\.print; only plain values"):
        decode(pickle.dumps([Shout()]), "pickle", SCHEMA, allow_pickle=True)
    assert capsys.readouterr().out == ""


JSONL = [
    (b"[]\n", "Column"),
    (b'{"row_id":"1","n":1}', "the last line does not end"),
    (b'{"row_id":"1","n":1.0}\n', "1.0"),
    (b'{"row_id":"1","n":"1"}\n', "changed from number to string"),
    (b'{"row_id":1,"n":1}\n', "changed from string to number"),
    (b'{"row_id":"1","n":9223372036854775808}\n', "9223372036854775808"),
    (b'{"row_id":"1","n":1,"m":2}\n', "unexpected field"),
    (b'{"row_id":"1","row_id":"2","n":1}\n', "specified twice"),
    (b'{"row_id":"\xff","n":1}\n', "not UTF-8"),
    (b'{"row_id":"\xed\xa0\x80","n":1}\n', "not UTF-8"),
    (b'{"row_id":"\\ud800","n":1}\n', "surrogate"),
    (b'{"row_id":"1","n":1}\n{"row_id"\n', "JSON parse error"),
    (b"\x00\x01\x02\n", "JSON parse error"),
]


@pytest.mark.parametrize(("data", "found"), JSONL, ids=lambda value: ascii(value)[:40])
def test_jsonl_of_other_content_is_found_out(data: bytes, found: str) -> None:
    with pytest.raises(CorruptFile, match=found):
        decode(data, "jsonl", {"row_id": "string", "n": "int64"})


JSONL_WITH_JSON = [
    (b'{"row_id":"1","j":{"a":1}\n', "line 1|JSON parse error"),
    (b'{"row_id":"1"}\n', r"row 1 has the columns \['row_id'\]"),
    (b'{"row_id":"1","j":1}\n{"row_id":"2","k":1}\n', "row 2 has the columns"),
    (b'{"row_id":"1","j":1}\n\n{"row_id":"2","j":1}\n', "line 2 is no JSON"),
    (b'{"row_id":"1","j":1}{"row_id":"2","j":1}\n', "1 lines hold 2 objects"),
    (b'{"row_id":1,"j":1}\n', "changed from string to number"),
    (b'{"row_id":1,"j":"\\ud800"}\n', "column 'row_id' is string, but row 1 holds 1"),
    (b'{"row_id":"\\ud800","j":1}\n', "does not fit its column"),
    (b'{"j":NaN,"row_id":"\\ud800"}\n', "does not fit its column"),
    (b'{"row_id":"1","j":tru}\n', "JSON parse error"),
    (b'{"row_id":"1","j":[[1,2}\n', "JSON parse error"),
    (b"3\n", "row 1 is 3; expected an object|line 1"),
]


@pytest.mark.parametrize(("data", "found"), JSONL_WITH_JSON, ids=lambda value: ascii(value)[:40])
def test_jsonl_with_json_columns_of_other_content_is_found_out(data: bytes, found: str) -> None:
    with pytest.raises(CorruptFile, match=found):
        decode(data, "jsonl", {"row_id": "string", "j": "json"})


def test_keys_in_another_order_are_read_by_name() -> None:
    data = b'{"row_id":"1","j":[1],"n":2}\n{"n":3,"j":null,"row_id":"2"}\n'
    read = decode(data, "jsonl", {"row_id": "string", "j": "json", "n": "int64"})
    assert read.to_pylist() == [{"row_id": "1", "j": "[1]", "n": 2}, {"row_id": "2", "j": None, "n": 3}]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"[\n", b"{}\n", b'[\n{"row_id":"1"}\n', b'[\n{"row_id":"1"}\n{}\n]\n']
)
def test_another_array_than_ours_is_no_json_file(data: bytes) -> None:
    with pytest.raises(CorruptFile, match="no json as it was written"):
        decode(data, "json", {"row_id": "string"})


CSV = [
    (b"", "Empty"),
    (b"row_id\n1\n", r"the columns are \['row_id'\]; expected"),
    (b"row_id,n,n\n1,2,3\n", "the columns are"),
    (b"row_id,n\n1,x\n", "x"),
    (b"row_id,n\n1\n", "Expected 2 columns, got 1"),
    (b"row_id,n\n\xff,1\n", "UTF"),
    (b"row_id,\xff\n1,1\n", "UTF-8"),
    (b"row_id,n\n1,1.5\n", "1.5"),
]


@pytest.mark.parametrize(("data", "found"), CSV, ids=lambda value: ascii(value)[:40])
def test_csv_of_other_content_is_found_out(data: bytes, found: str) -> None:
    with pytest.raises(CorruptFile, match=found):
        decode(data, "csv", {"row_id": "string", "n": "int64"})


PICKLES = [
    (b"{junk}", "invalid load key"),
    (pickle.dumps({}), "it holds a dict"),
    (pickle.dumps([1]), "row 1 is 1"),
    (pickle.dumps([{"row_id": "1"}]), "row 1 has the columns"),
    (pickle.dumps([{"row_id": "1", "n": 1.0}]), "column 'n' is int64, but row 1 holds 1.0"),
    (pickle.dumps([{"row_id": "1", "n": True}]), "column 'n' is int64, but row 1 holds True"),
    (pickle.dumps([{"row_id": "1", "n": 2**63}]), "does not fit its column"),
]


@pytest.mark.parametrize(("data", "found"), PICKLES, ids=lambda value: ascii(value)[:40])
def test_a_pickle_of_other_content_is_found_out(data: bytes, found: str) -> None:
    with pytest.raises(CorruptFile, match=found):
        decode(data, "pickle", {"row_id": "string", "n": "int64"}, allow_pickle=True)


def test_parquet_with_another_column_type_is_found_out() -> None:
    data = encode(table_of({"row_id": ["1"], "n": ["1"]}, {"row_id": "string", "n": "string"}), "parquet")
    with pytest.raises(CorruptFile, match="column 'n' is large_string; expected int64"):
        decode(data, "parquet", {"row_id": "string", "n": "int64"})


@every_format
@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_is_corrupt_or_a_valid_table_and_never_another_error(
    format: Format, seed: int
) -> None:
    source = random.Random(seed)
    for _ in range(20):
        data = bytearray(bytes(encode(TABLE, format)))
        place = source.randrange(len(data))
        data[place : place + source.randrange(3)] = source.randbytes(source.randrange(4))
        try:
            decode(bytes(data), format, SCHEMA, allow_pickle=True).validate(full=True)
        except CorruptFile as error:
            assert str(error).startswith(f"no {format} as it was written: ")


@pytest.mark.parametrize("format", ["jsonl", "json", "parquet", "pickle"])
def test_a_file_cut_within_a_row_is_corrupt(format: Format) -> None:
    data = bytes(encode(TABLE, format))
    for length in range(1, len(data) - 1, 7):
        if format == "jsonl" and data[:length].endswith(b"\n"):
            continue
        with pytest.raises(CorruptFile):
            decode(data[:length], format, SCHEMA, allow_pickle=True)
