import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataflow_assets_tests.cli.conftest import Call
from dataflow_assets_tests.crash.project import write_project


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_export_refuses_while_rows_wait_in_failed(call: Call, done: Path, tmp_path: Path):
    answer = call("export", "four.yaml", "--to", str(tmp_path / "rows.jsonl"), folder=done)
    assert answer.code == 1
    assert "1 rows failed in step 'sized'" in answer.err
    assert not list(tmp_path.iterdir())


def test_export_of_a_step_before_the_failure_is_whole(call: Call, done: Path, tmp_path: Path):
    answer = call("export", "four.yaml", "--step", "lower", "--to", str(tmp_path / "rows.jsonl"), folder=done)
    assert (answer.code, len(read_jsonl(tmp_path / "rows.jsonl"))) == (0, 60)
    assert read_jsonl(tmp_path / "rows.jsonl")[0] == {"n": 0, "text": "<b>row 0</b>"}


def test_export_refuses_while_batches_are_missing(call: Call, tmp_path: Path):
    write_project(tmp_path)
    answer = call("export", "four.yaml", "--to", "rows.jsonl")
    assert answer.code == 1
    assert "dataflow-assets run" in answer.err
    assert not (tmp_path / "rows.jsonl").exists()


def test_row_id_comes_when_asked_for(call: Call, done: Path, tmp_path: Path):
    to = str(tmp_path / "rows.jsonl")
    call("export", "four.yaml", "--step", "lower", "--to", to, "--row-id", folder=done)
    assert list(read_jsonl(tmp_path / "rows.jsonl")[0]) == ["row_id", "n", "text"]


def test_all_formats_hold_the_same_rows(call: Call, done: Path, tmp_path: Path):
    files = [tmp_path / f"rows.{ending}" for ending in ("jsonl", "json", "csv", "parquet")]
    for file in files:
        assert call("export", "four.yaml", "--to", str(file), "--allow-partial", folder=done).code == 0
    rows = read_jsonl(files[0])
    assert json.loads(files[1].read_text("utf-8")) == rows
    with files[2].open(newline="") as file:
        assert list(csv.DictReader(file)) == [{name: str(row[name]) for name in row} for row in rows]
    assert pq.read_table(files[3]).to_pylist() == rows


@pytest.mark.parametrize("name", ["rows.xlsx", "rows"])
def test_an_unknown_ending_is_a_mistake(call: Call, done: Path, tmp_path: Path, name: str):
    answer = call("export", "four.yaml", "--to", str(tmp_path / name), folder=done)
    assert answer.code == 2
    assert ".parquet" in answer.err


def test_an_unknown_step_is_a_mistake(call: Call, done: Path, tmp_path: Path):
    answer = call("export", "four.yaml", "--step", "uniqe", "--to", str(tmp_path / "rows.csv"), folder=done)
    assert answer.code == 2
