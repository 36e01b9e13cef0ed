"""JSON files: arrays, single and concatenated objects, bad elements, and breaks of the structure."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.records import _chunks
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import (
    bad_in,
    numbers_in,
    rows_in,
    rows_of_chunk,
    same_with_types,
    without_nulls,
    written,
)

SHAPES = {
    "array": '[{"a":1},{"a":2}]',
    "pretty array": json.dumps([{"a": 1}, {"a": 2}], indent=2),
    "one after another": '{"a":1}{"a":2}',
    "one a line": '{"a":1}\n{"a":2}\n',
    "pretty, one after another": json.dumps({"a": 1}, indent=2) + "\n" + json.dumps({"a": 2}, indent=2),
    "an array a line": '[{"a":1}]\n[{"a":2}]',
    "spaces around": '\n\t [ {"a":1} , {"a":2} ] \r\n',
}
BREAKS = {
    "malformed value": ('[{"a":1},{"a":x},{"a":3}]', 1, "character 15: malformed JSON"),
    "missing comma": ('[{"a":1} {"a":2}]', 1, "character 10: found '{' where `,` or `]` is due"),
    "trailing comma": ('[{"a":1},]', 1, "malformed JSON"),
    "two commas": ('[{"a":1},,{"a":2}]', 1, "malformed JSON"),
    "end inside the array": ('[{"a":1},{"a":2}', 2, "the file ends inside its array"),
    "end after a comma": ('[{"a":1},', 1, "the file ends inside its array"),
    "end inside a record": ('[{"a":1},{"a":"xx', 1, "Unterminated string"),
    "no JSON": ("id,text\n1,x", 0, "malformed JSON"),
    "closing bracket too many": ('[{"a":1}]]', 1, "malformed JSON"),
    "too deep": ('[{"a":1},' + "[" * 100_000, 1, "nested too deep"),
}
BAD_ELEMENTS = {
    "[1]": "not a JSON object: found an array",
    '"x"': "not a JSON object: found a string",
    "null": "not a JSON object: found null",
    "12": "not a JSON object: found a number",
    '{"a":NaN}': "NaN is not JSON",
    '{"a":{"b":-Infinity}}': "-Infinity is not JSON",
    '{"a":1e400}': "a number is beyond a double: 1e400",
    '{"\\ud800":1}': "a key is not valid Unicode (a lone surrogate)",
    '{"a":' + "[" * 300 + "]" * 300 + "}": "a value is nested deeper than 254 levels",
}


@pytest.mark.parametrize("chunk_bytes", [1, 3, 8192])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_rows(tmp_path, shape, chunk_bytes):
    path = written(tmp_path, "a.json", SHAPES[shape])
    assert rows_in(path, chunk_bytes) == [{"a": 1}, {"a": 2}]
    assert numbers_in(path, chunk_bytes) == [1, 2]


@pytest.mark.parametrize("content", ["", " \n", "[]", "[ ]", "[]\n[]"])
def test_a_file_without_records_has_no_rows(tmp_path, content):
    assert rows_in(written(tmp_path, "a.json", content)) == []


@pytest.mark.parametrize("chunk_bytes", [2, 8192])
@pytest.mark.parametrize("name", BREAKS)
def test_a_break_names_its_place_after_the_records_before_it(tmp_path, name, chunk_bytes):
    content, before, message = BREAKS[name]
    written(tmp_path, "a.json", content)
    spec = SourceSpec(path="a.json")
    read = _chunks(file_pieces(spec, tmp_path).pieces[0], spec, chunk_bytes if len(content) < 1000 else 8192)
    rows = []
    with pytest.raises(SourceError, match=r"a\.json, character") as caught:
        rows.extend(row for chunk in read for row in rows_of_chunk(chunk))
    assert message in str(caught.value)
    assert f"{before} records were read before" in str(caught.value)
    assert "source.format: jsonl" in str(caught.value)


@pytest.mark.parametrize("element", BAD_ELEMENTS)
def test_an_element_that_is_no_row_is_set_aside(tmp_path, element):
    path = written(tmp_path, "a.json", f'[{{"a":1}},{element},{{"a":3}}]')
    (record,) = bad_in(path)
    assert record == ("a.json", 2, BAD_ELEMENTS[element], element[:4096])
    assert numbers_in(path) == [1, 3]


def test_invalid_utf8_makes_its_record_bad(tmp_path):
    (record,) = bad_in(written(tmp_path, "a.json", b'[{"a":"\xff"},{"a":"\\ud800"}]'))
    assert (record.line, record.reason, record.raw) == (
        1,
        "invalid UTF-8: inside the record",
        '{"a":"\\xff"}',
    )


@pytest.mark.parametrize("chunk_bytes", [16, 8192])
def test_a_record_that_is_too_large_ends_the_reading(tmp_path, chunk_bytes):
    path = written(tmp_path, "a.json", json.dumps([{"a": 1}, {"a": "x" * 500}]))
    with pytest.raises(SourceError, match=r"larger than the 100 of `source\.max_line_bytes`.*1 records"):
        rows_in(path, chunk_bytes, max_line_bytes=100)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text()
            | st.lists(st.integers()),
        ),
        max_size=5,
    ),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 40),
)
def test_any_array_comes_back_as_the_standard_parser_has_it(tmp_path_factory, rows, indent, chunk_bytes):
    folder = tmp_path_factory.getbasetemp()
    path = written(folder, "any.json", json.dumps(rows, indent=indent))
    found = rows_in(path, chunk_bytes)
    assert all(map(same_with_types, found, [dict(row) for row in found]))
    assert found == [without_nulls(row) for row in rows]
