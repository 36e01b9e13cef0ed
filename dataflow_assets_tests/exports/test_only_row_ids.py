"""A step whose rows have nothing but their id: no export says that it wrote what it did not."""

import json
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.append import append_step
from dataflow_assets.exports.file import export_step
from dataflow_assets.exports.writing import export_folder
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import pipeline, walk

NOTHING_ELSE = {"name": "bare", "type": "select_columns", "params": {"drop": ["text"]}}


@pytest.fixture
def work(tmp_path: Path) -> PipelineWork:
    (tmp_path / "in.jsonl").write_text('{"text":"a"}\n{"text":"b"}\n')
    return walk(pipeline(tmp_path, tmp_path / "in.jsonl", NOTHING_ELSE, batch_rows=1))


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "pickle"])
def test_a_file_of_them_has_the_ids_or_is_refused(work: PipelineWork, tmp_path: Path, ending: str):
    to = tmp_path / f"out.{ending}"
    with pytest.raises(ConfigError, match=r"the 2 rows of 'bare' have no column but 'row_id'.*--row-id"):
        export_step(work, None, to)
    assert not to.exists()
    assert export_step(work, None, to, with_row_id=True) == 2


def test_a_file_that_grows_is_refused_too(work: PipelineWork, tmp_path: Path):
    with pytest.raises(ConfigError, match="no column but 'row_id'"):
        append_step(work, None, tmp_path / "out.jsonl")
    assert append_step(work, None, tmp_path / "out.jsonl", with_row_id=True).rows == 2
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"row_id": "in:1"}, {"row_id": "in:2"}]


def test_a_folder_of_them_is_refused_too(work: PipelineWork, tmp_path: Path):
    with pytest.raises(ConfigError, match="no column but 'row_id'"):
        export_folder(work, None, tmp_path / "out", "webdataset")
    assert export_folder(work, None, tmp_path / "out", "webdataset", with_row_id=True) == 2
