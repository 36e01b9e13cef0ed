"""A step folder as it is, given to the readers that people use."""

import json
import os

import pytest

from dataflow_assets_tests.walk import pipeline, walk

SHORT = {"name": "long", "type": "filter_length", "params": {"min_chars": 3}}


def _step_folder(tmp_path, format):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps({"text": "x" * n, "n": n}) for n in range(1, 8)))
    return walk(pipeline(tmp_path, source, SHORT, batch_rows=3, format=format)).folder_of("long").path


@pytest.mark.parametrize("format", ["jsonl", "parquet", "csv"])
def test_datasets_loads_the_kept_rows_alone(format, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    folder = _step_folder(tmp_path, format)
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["n"][:] == [3, 4, 5, 6, 7]


def test_pandas_and_pyarrow_read_a_folder_of_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    assert pandas.read_parquet(_step_folder(tmp_path, "parquet"))["n"].tolist() == [3, 4, 5, 6, 7]


def test_a_file_of_the_users_own_in_a_step_folder_is_left_alone(tmp_path):
    folder = _step_folder(tmp_path, "jsonl")
    (folder / "notes.txt").write_text("mine")
    (folder / "gone_b00007.jsonl").write_text("{")
    from dataflow_assets.io.step_folder import StepFolder

    StepFolder(folder).remove_all_but({"in_b00000", "in_b00001", "in_b00002"})
    assert sorted(os.listdir(folder))[:2] == [".huggingface.yaml", "_commits"]
    assert (folder / "notes.txt").exists()
    assert not (folder / "gone_b00007.jsonl").exists()
