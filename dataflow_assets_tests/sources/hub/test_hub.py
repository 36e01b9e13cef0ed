"""Data sets that `datasets` knows, offline: exact values, splits, what is refused, what a change redoes."""

import pytest

from dataflow_assets.errors import SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.sources.hub.made_datasets import (
    dataset,
    jsonl_folder,
    parquet_folder,
    saved,
    saved_splits,
)
from dataflow_assets_tests.walk import UNCHANGED, rows, walk

FIRST = {
    "text": None,
    "label": -1,
    "tags": [0, 1],
    "meta": {"a": 0, "b": [0.5]},
    "when": "2024-01-05T10:00:00.000+00:00",
    "big": 2**63 - 1,
}


@pytest.fixture(autouse=True)
def _offline(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf")


def pipeline(tmp_path, hf: object, batch_rows: int | None = 20, **source: object) -> Pipeline:
    root = str(tmp_path / "data")
    return Pipeline(
        name="p", source={"hf": str(hf), **source}, batch_rows=batch_rows, root=root, steps=[UNCHANGED]
    )


def walked(tmp_path, hf: object, **source: object) -> list[dict]:
    return rows(walk(pipeline(tmp_path, hf, **source)), "kept")


def test_a_saved_data_set_has_every_value_exactly(tmp_path):
    found = walked(tmp_path, saved(tmp_path / "set"))
    assert {name: value for name, value in found[0].items() if name != "row_id"} == FIRST
    assert [row["text"] for row in found] == dataset()["text"][:]
    assert [row["row_id"] for row in found[33:36]] == ["set-00000:34", "set-00001:1", "set-00001:2"]


def test_a_folder_of_parquet_files_has_the_same_rows(tmp_path):
    found = walked(tmp_path, parquet_folder(tmp_path / "set"))
    assert {name: value for name, value in found[0].items() if name != "row_id"} == FIRST
    assert [row["text"] for row in found] == dataset()["text"][:]
    assert found[-1]["row_id"] == "train-00002-of-00003:33"


@pytest.mark.parametrize("made", [saved, parquet_folder])
def test_class_labels_become_their_names_where_that_is_asked_for(tmp_path, made):
    found = walked(tmp_path, made(tmp_path / "set"), class_labels="name")
    assert [row["label"] for row in found[:4]] == [None, "pos", "neg", "pos"]
    assert found[0]["tags"] == ["a", "b"]


@pytest.mark.parametrize("made", [saved_splits, parquet_folder])
def test_a_split_is_chosen_by_name(tmp_path, made):
    folder = made(tmp_path / "set")
    assert len(walked(tmp_path, f"{folder}::test")) == 10
    assert len(walked(tmp_path, folder)) == 100
    with pytest.raises(SourceError, match=r"has no split 'tset' .*did you mean 'test'"):
        walked(tmp_path, f"{folder}::tset")


def test_nothing_is_guessed_of_json_lines(tmp_path):
    found = walked(tmp_path, jsonl_folder(tmp_path / "set"))
    assert [found[0][name] for name in ("code", "day", "n")] == ["007", "2024-01-05", 0]


def test_a_card_decides_configs_and_features(tmp_path):
    card = (
        "configs:\n- config_name: other\n  data_files: train.jsonl\n"
        "dataset_info:\n- config_name: other\n  features:\n"
        "  - {name: code, dtype: int64}\n  - {name: day, dtype: string}\n  - {name: n, dtype: float64}\n"
    )
    folder = jsonl_folder(tmp_path / "set", card)
    with pytest.raises(SourceError, match="other"):
        walked(tmp_path, f"{folder}:nosuch")
    found = walked(tmp_path, f"{folder}:other:train", columns=["code", "n"])
    assert [(row["code"], row["n"]) for row in found[:2]] == [(7, 0.0), (7, 1.0)]


def test_images_are_refused_by_name(tmp_path):
    from datasets import Dataset, Features, Image, Value

    features = Features({"picture": Image(), "text": Value("string")})
    Dataset.from_dict({"picture": [None], "text": ["x"]}, features=features).save_to_disk(tmp_path / "set")
    with pytest.raises(SourceError, match=r"column 'picture' is a feature Image, and that is no text"):
        walked(tmp_path, tmp_path / "set")
    assert walked(tmp_path, tmp_path / "set", columns=["text"])[0]["text"] == "x"


def test_only_a_changed_file_is_read_again(tmp_path, monkeypatch):
    folder = parquet_folder(tmp_path / "set")
    made = pipeline(tmp_path, folder)
    walk(made)
    assert PipelineWork(made).source_is_current()
    dataset(5).to_parquet(folder / "data/train-00001-of-00003.parquet")
    assert not PipelineWork(made).source_is_current()
    read: list[str] = []
    from dataflow_assets.sources.hub.builder import DataFilePiece

    chunks = DataFilePiece.chunks
    monkeypatch.setattr(
        DataFilePiece, "chunks", lambda self, size: read.append(self.slug) or chunks(self, size)
    )
    assert len(rows(walk(made), "kept")) == 34 + 5 + 33
    assert read == ["train-00001-of-00003"]


def test_rows_go_on_one_by_one_whatever_the_batch(tmp_path):
    folder = saved(tmp_path / "set")
    whole = walked(tmp_path, folder, batch_rows=None)
    assert whole == walked(tmp_path, folder, batch_rows=7)


def test_a_damaged_file_is_told_by_name(tmp_path):
    folder = saved(tmp_path / "set")
    arrow = folder / "data-00001-of-00003.arrow"
    arrow.write_bytes(arrow.read_bytes()[:3000])
    with pytest.raises(SourceError, match=r"set/data-00001-of-00003\.arrow: .*expected a whole Arrow file"):
        walked(tmp_path, folder)


def test_a_name_that_is_nowhere_is_told_offline(tmp_path):
    with pytest.raises(SourceError, match=r"source hf:nobody/nothing"):
        walked(tmp_path, "nobody/nothing")


def test_what_datasets_alone_can_read_is_streamed_by_it(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files: a.csv\n  sep: ';'\n---\n"
    )
    (folder / "a.csv").write_text("n;text\n1;一\n2;二\n")
    found = walked(tmp_path, folder)
    assert [(row["n"], row["text"]) for row in found] == [(1, "一"), (2, "二")]
