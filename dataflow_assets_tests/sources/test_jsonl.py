"""JSON lines: odd lines one by one, chunks, names of columns, and rows against the standard parser."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.batch import column_type, infer_type
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.columns import array_of
from dataflow_assets.sources.jsonl import chunk_of_lines
from dataflow_assets.sources.lines import LineBlock
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import (
    bad_in,
    chunks_of,
    numbers_in,
    rows_in,
    rows_of_chunk,
    same_with_types,
    sorted_keys,
    without_nulls,
    written,
)

GOOD_LINES = {
    "carriage return": (b'{"a":"x"}\r', {"a": "x"}),
    "spaces around": (b' \t{"a":1} ', {"a": 1}),
    "duplicate keys, last wins": (b'{"a":1,"a":2}', {"a": 2}),
    "empty key": (b'{"":1}', {"": 1}),
    "empty object": (b"{}", {}),
    "null is missing": (b'{"a":null,"b":1}', {"b": 1}),
    "lone surrogate": (b'{"a":"\\ud800x"}', {"a": "\ud800x"}),
    "lone surrogate nested": (b'{"a":["\\udc00"]}', {"a": ["\udc00"]}),
    "surrogate pair": (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
    "escaped NUL": (b'{"a":"\\u0000"}', {"a": "\0"}),
    "2**63 - 1": (b'{"a":9223372036854775807}', {"a": 2**63 - 1}),
    "2**63": (b'{"a":9223372036854775808}', {"a": 2**63}),
    "2**64": (b'{"a":18446744073709551616}', {"a": 2**64}),
    "-2**63 - 1": (b'{"a":-9223372036854775809}', {"a": -(2**63) - 1}),
    "nested 2**64": (b'{"a":{"b":[18446744073709551616]}}', {"a": {"b": [2**64]}}),
    "nested -2**63 - 1": (b'{"a":[-9223372036854775809]}', {"a": [-(2**63) - 1]}),
    "1000 digits": (b'{"a":' + b"7" * 1000 + b"}", {"a": int("7" * 1000)}),
    "large float": (b'{"a":1e300}', {"a": 1e300}),
    "large float nested": (b'{"a":[1e300, 2]}', {"a": [1e300, 2]}),
    "float that is whole": (b'{"a":3.0}', {"a": 3.0}),
    "negative zero": (b'{"a":-0.0}', {"a": -0.0}),
    "17 digits": (b'{"a":0.1000000000000000055}', {"a": 0.1}),
    "tiny float": (b'{"a":1e-400}', {"a": 0.0}),
    "byte order mark inside": ('{"a":"x\ufeffy"}'.encode(), {"a": "x\ufeffy"}),
    "depth 200": (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", None),
    "key with a dot": (b'{"a.b":1}', {"a.b": 1}),
}
BAD_LINES = {
    "NaN": (b'{"a":NaN}', "NaN is not JSON"),
    "nested NaN": (b'{"a":[NaN]}', "NaN is not JSON"),
    "Infinity": (b'{"a":-Infinity}', "-Infinity is not JSON"),
    "1e400": (b'{"a":1e400}', "a number is beyond a double: 1e400"),
    "array": (b"[1]", "not a JSON object: found an array"),
    "string": (b'"x"', "not a JSON object: found a string"),
    "number": (b"12", "not a JSON object: found a number"),
    "null": (b"null", "not a JSON object: found null"),
    "true": (b"true", "not a JSON object: found true or false"),
    "truncated": (b'{"a":1', "malformed JSON"),
    "two objects": (b'{"a":1}{"a":2}', "malformed JSON: Extra data"),
    "single quotes": (b"{'a':1}", "malformed JSON"),
    "trailing comma": (b'{"a":1,}', "malformed JSON"),
    "raw tab in a string": (b'{"a":"\t"}', "malformed JSON: Invalid control character"),
    "invalid UTF-8": (b'{"a":"\xff"}', "invalid UTF-8: at byte 7"),
    "encoded surrogate": (b'{"a":"\xed\xa0\x80"}', "invalid UTF-8"),
    "surrogate key": (b'{"\\ud800":1}', "a key is not valid Unicode"),
    "NUL bytes": (b"\0\0\0", "malformed JSON"),
    "byte order mark": (b'\xef\xbb\xbf{"a":1}', "malformed JSON"),
    "depth 300": (b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 254"),
    "depth 1000": (b'{"a":' + b"[" * 1000 + b"]" * 1000 + b"}", "nested"),
    "depth 100000": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
}


@pytest.mark.parametrize("name", GOOD_LINES)
def test_odd_line_that_is_a_row(tmp_path, name):
    line, expected = GOOD_LINES[name]
    path = written(tmp_path, "a.jsonl", b'{"first":0}\n' + line + b'\n{"last":1}')
    rows = rows_in(path)
    assert [rows[0], rows[2]] == [{"first": 0}, {"last": 1}]
    assert expected is None or same_with_types(rows[1], expected)
    assert bad_in(path) == []


@pytest.mark.parametrize("name", BAD_LINES)
def test_odd_line_that_is_bad(tmp_path, name):
    line, reason = BAD_LINES[name]
    path = written(tmp_path, "a.jsonl", b'{"first":0}\n' + line + b'\n{"last":1}')
    (record,) = bad_in(path)
    assert (record.file, record.line) == ("a.jsonl", 2)
    assert reason in record.reason
    assert rows_in(path) == [{"first": 0}, {"last": 1}]
    assert numbers_in(path) == [1, 3]


def test_blank_lines_are_counted_and_skipped(tmp_path):
    path = written(tmp_path, "a.jsonl", '\n{"a":1}\n\n \t\r\n{"a":2}\n\n')
    assert numbers_in(path) == [2, 5]
    assert bad_in(path) == []


def test_an_empty_file_has_no_rows(tmp_path):
    assert chunks_of(written(tmp_path, "a.jsonl", "")) == []


def test_numbers_stay_when_another_line_is_mended(tmp_path):
    broken = written(tmp_path, "a.jsonl", '{"a":1}\n{"a":\n{"a":3}\n')
    mended = written(tmp_path, "b.jsonl", '{"a":1}\n{"a":2}\n{"a":3}\n')
    assert set(numbers_in(broken)) < set(numbers_in(mended))


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 4096])
def test_rows_do_not_depend_on_the_size_of_chunks(tmp_path, chunk_bytes):
    lines = [json.dumps({"n": n, "text": "é" * (n % 50)}, ensure_ascii=False) for n in range(200)]
    path = written(tmp_path, "a.jsonl", "\n".join(lines))
    assert rows_in(path, chunk_bytes) == rows_in(path)
    assert numbers_in(path, chunk_bytes) == list(range(1, 201))


@pytest.mark.parametrize("chunk_bytes", [5, 64, 4096])
def test_a_line_that_is_too_long_is_bad_and_the_next_is_read(tmp_path, chunk_bytes):
    long = '{"a":"' + "x" * 500 + '"}'
    path = written(tmp_path, "a.jsonl", f'{{"a":1}}\n{long}\n{{"a":3}}\n{long}')
    chunks = chunks_of(path, chunk_bytes, max_line_bytes=100)
    bad = [record for chunk in chunks for record in chunk.bad]
    assert [record.line for record in bad] == [2, 4]
    assert bad[0].reason == "the line is too long: 508 bytes, more than the 100 of source.max_line_bytes"
    assert [row["a"] for chunk in chunks for row in rows_of_chunk(chunk)] == [1, 3]


def test_raw_text_of_a_bad_record_is_cut_with_a_note(tmp_path):
    (record,) = bad_in(written(tmp_path, "a.jsonl", "[" + "x" * 10_000))
    assert record.raw == "[" + "x" * 4095 + " … (cut; 10001 bytes in all)"


def test_columns_and_rename_choose_and_name(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"q":"x","row_id":1,"z":2}')
    assert rows_in(path, columns=["q"], rename={"q": "text"}) == [{"text": "x"}]


@pytest.mark.parametrize("name", ["row_id", "reject_reason", "error_class", "error_message", "attempts"])
def test_a_reserved_column_is_refused_and_rename_helps(tmp_path, name):
    path = written(tmp_path, "a.jsonl", json.dumps({name: "x"}))
    with pytest.raises(SourceError, match=rf"a\.jsonl: column '{name}'.*source\.rename"):
        rows_in(path)
    assert rows_in(path, rename={name: "other"}) == [{"other": "x"}]


def test_a_rename_onto_another_column_is_refused(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"q":"x","text":"y"}')
    with pytest.raises(SourceError, match="'q' and 'text' would both be called 'text'"):
        rows_in(path, rename={"q": "text"})


def test_ids_as_keys_are_refused(tmp_path):
    path = written(tmp_path, "a.jsonl", "\n".join(json.dumps({f"k{n}": n}) for n in range(5000)) + "\n")
    with pytest.raises(SourceError, match=r"5000 different keys.*source\.columns"):
        rows_in(path)


def test_a_rounded_integer_in_one_row_leaves_floats_of_others(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"a":1e20}\n{"a":100000000000000000001}\n{"a":0.5}')
    values = [row["a"] for row in rows_in(path)]
    assert same_with_types(values, [1e20, 100000000000000000001, 0.5])


texts = st.text(st.characters(codec="utf-8"), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["a", "b", "c", "", "é"])
json_rows = st.lists(st.dictionaries(keys, values, max_size=4), max_size=6)


@settings(max_examples=100, deadline=None)
@given(json_rows)
def test_any_rows_come_back_as_the_standard_parser_has_them(rows):
    lines = [json.dumps(row).encode() for row in rows]
    chunk = chunk_of_lines(LineBlock(1, lines, []), "a.jsonl", SourceSpec(path="a.jsonl"))
    expected = [sorted_keys(without_nulls(json.loads(line))) for line in lines]
    assert chunk.bad == []
    assert same_with_types(list(map(sorted_keys, rows_of_chunk(chunk))), expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(values, max_size=6))
def test_the_type_of_a_column_is_the_inferred_one(column):
    array, kind = array_of(column)
    assert kind == infer_type(column)
    assert len(array) == len(column)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_bad_records_and_no_error(content):
    lines = content.split(b"\n")
    chunk = chunk_of_lines(LineBlock(1, lines, []), "a.jsonl", SourceSpec(path="a.jsonl"))
    blank = sum(not line.strip() for line in lines)
    assert chunk.table.num_rows + len(chunk.bad) + blank == len(lines)
    assert all(column_type(field) for field in chunk.table.schema if str(field.type) != "null")
