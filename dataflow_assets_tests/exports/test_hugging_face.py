import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dataflow_assets.exports.file import export_step
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.exports.conftest import Exported
from dataflow_assets_tests.torch.made_steps import Rows, dataset, made, texts
from dataflow_assets_tests.walk import pipeline, walk

datasets = pytest.importorskip("datasets")

CHATS = [
    {"messages": [{"role": "user", "content": f"问 {n}"}, {"role": "assistant", "content": "答"}], "n": n}
    for n in range(20)
]


def loaded(folder: Path, tmp_path: Path, **how: object) -> Any:
    return datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"), **how)


def with_empty_batches(folder: Path) -> PipelineWork:
    """Batches of three rows, of which the filter drops all of the first and the third."""
    (folder / "in.jsonl").write_text("".join(json.dumps({"n": n}) + "\n" for n in range(12)))
    keep = {"name": "kept", "type": "filter_expression", "params": {"keep": "n in (3, 4, 9)"}}
    return walk(pipeline(folder, folder / "in.jsonl", keep, batch_rows=3, format="parquet"))


def test_datasets_loads_the_folder_as_it_is(exported: Exported, tmp_path: Path):
    folder = exported(CHATS, "hf")
    assert [path.name for path in sorted((folder / "data").iterdir())] == ["train-00000-of-00001.parquet"]
    assert loaded(folder, tmp_path).to_list() == CHATS


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_loads_rows_after_an_empty_batch(exported: Exported, tmp_path: Path, streaming: bool):
    work = with_empty_batches(tmp_path)
    export_step(work, None, tmp_path / "one" / "rows.parquet")
    for folder in (exported(work, "hf"), tmp_path / "one", work.folder_of("kept").path):
        assert [row["n"] for row in loaded(folder, tmp_path, streaming=streaming)] == [3, 4, 9]


def test_small_batches_are_one_row_group(exported: Exported, tmp_path: Path):
    work = made(tmp_path / "pipeline", CHATS, batch_rows=3)
    export_step(work, None, tmp_path / "rows.parquet")
    for file in (tmp_path / "rows.parquet", *(exported(work, "hf") / "data").iterdir()):
        assert pq.read_metadata(file).row_group(0).num_rows == pq.read_metadata(file).num_rows == 20


def test_values_of_different_shapes_stay_exact_as_their_text(exported: Exported, tmp_path: Path):
    values: list[Any] = [[1], [1.0], {"a": 2**70}, {"a": "\ud800"}, {"b": None}, None]
    folder = exported([{"mixed": value, "text": "t"} for value in values], "hf")
    found = [text and json.loads(text) for text in loaded(folder, tmp_path)["mixed"]]
    assert found == values
    assert [type(value) for value in found[0] + found[1]] == [int, float]
    assert "`mixed`" in (folder / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "values",
    [
        [[], [1], [None]],
        [{"a": 1, "b": [None]}, {"b": ["x"], "a": None}],
        [[{"x": 0.1234567890123456789}], [], None],
        [[2**62], [-1]],
    ],
)
def test_values_of_one_shape_are_nested(exported: Exported, tmp_path: Path, values: list):
    rows = [{"value": value, "text": "t"} for value in values]
    assert loaded(exported(rows, "hf"), tmp_path)["value"][:] == values


def test_the_card_is_of_the_exported_step(exported: Exported):
    card = (exported(made_source(), "hf", step=0) / "README.md").read_text("utf-8")
    assert "10 rows were read and 10 came out of 0 steps" in card


@pytest.mark.parametrize("with_row_id", [False, True])
def test_the_card_has_the_columns_of_the_parquet_files(exported: Exported, tmp_path: Path, with_row_id: bool):
    rows = [{"text": "a", "early": 1}, {"text": "b"}]
    work = made(tmp_path / "pipeline", rows, batch_rows=1)
    folder = exported(work, "hf", with_row_id=with_row_id)
    (file,) = (folder / "data").iterdir()
    table = (folder / "README.md").read_text("utf-8").partition("## Columns")[2].partition("##")[0]
    named = [line.split("|")[1].strip().replace("\\", "") for line in table.strip().splitlines()[2:]]
    assert named == pq.read_schema(file).names


def made_source() -> Rows:
    return texts(10)


def test_the_same_rows_give_the_same_bytes(exported: Exported):
    folder = exported(CHATS, "hf")
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    work = made(folder.parent / "pipeline", CHATS)
    assert {path: path.read_bytes() for path in exported(work, "hf").rglob("*") if path.is_file()} == first


def test_a_hf_dataset_has_the_rows_of_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    rows = dataset(tmp_path / "p", CHATS)
    found = rows.to_hf_dataset()
    assert found.to_list() == [rows[number] for number in range(len(rows))]
    assert rows.to_hf_dataset().to_list() == found.to_list()
    assert len(list((tmp_path / "cache" / "dataflow_assets").iterdir())) == 1
