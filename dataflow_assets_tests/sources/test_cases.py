"""The shared input cases of the classes io-fidelity and schema-drift, as the readers see them."""

import json

import pytest

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.records import peek_schema
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import (
    CASES,
    bad_in,
    chunks_of,
    numbers_in,
    rows_in,
    same_with_types,
    sorted_keys,
    without_nulls,
)

LOSSLESS = [
    "01_numeric_strings_bigints/input.jsonl",
    "01_numeric_strings_bigints/input_int64.jsonl",
    "02_date_like_values/input.jsonl",
    "02_date_like_values/input_all_parsable.jsonl",
    "04_unicode_line_separators/input.jsonl",
    "05_utf8_bom/input.jsonl",
    "05_utf8_bom/input.json",
    "09_null_only_first_batch/input.jsonl",
    "10_mixed_list_dict_field/input.jsonl",
    "12_late_field_and_absent/input.jsonl",
]


def expected_rows(path):
    text = path.read_text(encoding="utf-8-sig")
    values = (
        json.loads(text)
        if path.suffix == ".json"
        else map(json.loads, text.split("\n")[: text.count('{"id')])
    )
    return [without_nulls(row) for row in values]


@pytest.mark.parametrize("chunk_bytes", [None, 64])
@pytest.mark.parametrize("name", LOSSLESS)
def test_rows_equal_those_of_the_standard_parser_with_types(name, chunk_bytes):
    rows, expected = rows_in(CASES / name, chunk_bytes), expected_rows(CASES / name)
    assert same_with_types(list(map(sorted_keys, rows)), list(map(sorted_keys, expected)))


@pytest.mark.parametrize("name", LOSSLESS)
def test_no_record_of_a_lossless_case_is_bad(name):
    assert bad_in(CASES / name) == []


def test_case_01_big_integers_are_exact():
    row = rows_in(CASES / "01_numeric_strings_bigints/input.jsonl")[0]
    assert (row["id"], row["code"], row["amount"]) == ("900719925474099301", "00042", "1.10")
    assert (row["n"], row["u"]) == (9007199254740993, 18446744073709551615)
    assert row["big"] == 123456789012345678901234567890


def test_case_04_texts_keep_their_separators():
    texts = [row["text"] for row in rows_in(CASES / "04_unicode_line_separators/input.jsonl")]
    assert texts == ["第一句\u2028第二句\u2029第三句", "NEL\u0085后面", "竖排\u000b与换页\u000c"]


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_case_05_a_mark_at_the_start_is_dropped_and_one_inside_stays(kind):
    rows = rows_in(CASES / f"05_utf8_bom/input.{kind}")
    assert [row["text"] for row in rows] == ["首行", "中\ufeff间"]
    assert [row["meta"] for row in rows] == [{"a": 1}, {"b": 2}]
    assert list(rows[0]) == ["id", "meta", "text"]


def test_case_05_the_first_csv_column_has_a_clean_name():
    rows = rows_in(CASES / "05_utf8_bom/input.csv")
    assert rows == [{"id": "1", "text": "首行"}, {"id": "2", "text": "末行"}]


def test_case_06_csv_cells_are_the_strings_that_stand_there():
    folder = CASES / "06_csv_text_fidelity"
    assert rows_in(folder / "input.csv") == [
        json.loads(line) for line in (folder / "expected.jsonl").read_text("utf-8").splitlines()
    ]
    assert numbers_in(folder / "input.csv") == [2, 4, 5, 6, 7, 8]


def test_case_07_bad_lines_are_set_aside_with_reason_and_raw_text():
    path = CASES / "07_bad_lines_quarantine/input.jsonl"
    bad = bad_in(path)
    assert [row["text"] for row in rows_in(path)] == ["好", "中", "尾"]
    assert numbers_in(path) == [1, 4, 7]
    assert [(record.file, record.line) for record in bad] == [("input.jsonl", line) for line in (3, 5, 8)]
    assert bad[0].reason.startswith("malformed JSON: Unterminated string")
    assert bad[1].reason == "not a JSON object: found an array"
    assert bad[1].raw == "[1,2,3]"
    assert bad[2].reason.startswith("invalid UTF-8: at byte")
    assert "\\x" in bad[2].raw


def test_case_07_strict_reading_names_the_first_bad_line():
    with pytest.raises(SourceError, match=r"input\.jsonl, line 3: malformed JSON"):
        chunks_of(CASES / "07_bad_lines_quarantine/input.jsonl", on_bad_line="fail")


def test_case_09_a_column_of_nulls_has_no_type_yet():
    path = CASES / "09_null_only_first_batch/input.jsonl"
    first = chunks_of(path, chunk_bytes=130)[0].table
    assert str(first.schema.field("answer").type) == "null"
    pieces = file_pieces(SourceSpec(path="input.jsonl"), path.parent).pieces
    assert peek_schema(pieces, SourceSpec(path="input.jsonl")) == {
        "id": "int64",
        "answer": "string",
        "tags": "json",
        "meta": "json",
    }


def test_case_09_an_object_of_nulls_is_not_null():
    rows = rows_in(CASES / "09_null_only_first_batch/input.jsonl")
    assert rows[6]["meta"] == {"src": None}
    assert rows[0] == {"id": 1, "tags": []}


def test_case_10_mixed_values_stay_what_they_are():
    values = [row["conversations"] for row in rows_in(CASES / "10_mixed_list_dict_field/input.jsonl")]
    turn = {"from": "human", "value": "你好"}
    assert values == [[turn], {"from": "human", "value": "单个"}, "纯文本", [], 42]


def test_case_12_late_fields_come_and_absent_ones_stay_absent():
    rows = rows_in(CASES / "12_late_field_and_absent/input.jsonl")
    assert rows[4]["symlink_target"] == "./b.c"
    assert rows[4]["meta"] == {"k": 5, "link": "../x"}
    assert rows[3]["meta"] == {}
    assert [row.get("text") for row in rows] == ["a", None, None, "d", "e", "f"]
