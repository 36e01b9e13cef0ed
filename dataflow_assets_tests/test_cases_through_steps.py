"""The shared input cases through step 0 and a step, in every format and batch size."""

import json
from pathlib import Path

import pytest

from dataflow_assets.batch import ROW_ID
from dataflow_assets_tests.walk import pipeline, rows, walk, without_ids

CASES = Path(__file__).parent / "cases"
FORMATS = ("jsonl", "json", "csv", "parquet", "pickle")
INPUTS = [
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


def _expected(path: Path) -> list[dict]:
    text = path.read_text(encoding="utf-8-sig")
    lines = [line for line in text.split("\n") if line]
    found = json.loads(text) if path.suffix == ".json" else list(map(json.loads, lines))
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def _types(rows: list[dict]) -> list[list[type]]:
    return [list(map(type, row.values())) for row in rows]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 1000, None])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", INPUTS)
def test_rows_come_out_as_they_went_in(case, format, batch_rows, tmp_path):
    made = pipeline(
        tmp_path, CASES / case, format=format, batch_rows=batch_rows, allow_pickle=format == "pickle"
    )
    found = without_ids(rows(walk(made), "kept"))
    expected = _expected(CASES / case)
    assert found == expected
    assert _types(found) == _types(expected)


@pytest.mark.parametrize("batch_rows", [1, 2, 3, None])
def test_all_batches_of_a_source_have_the_same_columns(batch_rows, tmp_path):
    case = "12_late_field_and_absent/input.jsonl"
    work = walk(pipeline(tmp_path, CASES / case, batch_rows=batch_rows))
    records = [work.folder_of("kept").record(key) for key in work.known_manifest().batches]
    assert len({json.dumps(record.schema) for record in records if record}) == 1


def test_json_lines_of_a_step_are_json_values_not_strings(tmp_path):
    case = "10_mixed_list_dict_field/input.jsonl"
    work = walk(pipeline(tmp_path, CASES / case, batch_rows=2))
    files = sorted((work.folder_of("kept").path).glob("*.jsonl"))
    written = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    for row in written:
        del row[ROW_ID]
    assert without_ids(written) == _expected(CASES / case)


def test_parquet_batches_read_together_keep_late_fields(tmp_path):
    import pyarrow.parquet as pq

    case = "12_late_field_and_absent/input.jsonl"
    work = walk(pipeline(tmp_path, CASES / case, batch_rows=2, format="parquet"))
    table = pq.read_table(work.folder_of("kept").path)
    assert table["symlink_target"].to_pylist()[4] == "./b.c"
    assert json.loads(table["meta"].to_pylist()[4]) == {"k": 5, "link": "../x"}
