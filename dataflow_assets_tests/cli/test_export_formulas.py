"""Formulas in rows: exported as they are, or as texts for whoever opens the file in a spreadsheet."""

import csv
import json
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.file import export_step
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import pipeline, walk

FORMULAS = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("http://x","y")']
PLAIN = ["text", "a=b", "1", " =1", "", "'=1", "中文"]


def work(folder: Path) -> PipelineWork:
    rows = [{"text": text, "=name": number} for number, text in enumerate(FORMULAS + PLAIN)]
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return walk(pipeline(folder, folder / "in.jsonl", batch_rows=3))


def exported(folder: Path, **how: bool) -> tuple[list[str], list[str]]:
    export_step(work(folder), None, folder / "out.csv", **how)
    with (folder / "out.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows]


def test_values_are_exported_as_they_are(tmp_path: Path):
    assert exported(tmp_path) == (["text", "=name"], FORMULAS + PLAIN)


def test_for_a_spreadsheet_no_cell_begins_as_a_formula_does(tmp_path: Path):
    header, texts = exported(tmp_path, for_spreadsheet=True)
    assert header == ["text", "'=name"]
    assert texts == [f"'{text}" for text in FORMULAS] + PLAIN


def test_other_files_have_no_such_option(tmp_path: Path):
    with pytest.raises(ConfigError, match="for CSV alone"):
        export_step(work(tmp_path), None, tmp_path / "out.jsonl", for_spreadsheet=True)
