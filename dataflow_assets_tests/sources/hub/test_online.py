"""Data sets of the Hub, against a server that speaks its API."""

import shutil
from pathlib import Path

import pytest

from dataflow_assets.errors import SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.manifest import Manifest
from dataflow_assets_tests.sources.hub.hub_server import Hub, hub_server
from dataflow_assets_tests.sources.hub.made_datasets import dataset, parquet_folder
from dataflow_assets_tests.walk import UNCHANGED, walk

ONE, TWO = "1" * 40, "2" * 40


def _point_at(hub: Hub, tmp_path: Path, monkeypatch) -> None:
    """Makes the libraries ask this server, with empty caches."""
    monkeypatch.setenv("DATAFLOW_SOURCE_CACHE", str(tmp_path / "cache"))
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    for place, value in {
        "huggingface_hub.constants.ENDPOINT": hub.url,
        "huggingface_hub.constants.HF_HUB_OFFLINE": False,
        "huggingface_hub.constants.HF_HUB_CACHE": str(tmp_path / "hf"),
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE": template,
        "datasets.config.HF_ENDPOINT": hub.url,
        "datasets.config.HF_HUB_OFFLINE": False,
        "datasets.config.HF_DATASETS_CACHE": tmp_path / "hf",
    }.items():
        monkeypatch.setattr(place, value)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The data set `people/talk` with one commit."""
    with hub_server("people/talk") as hub:
        _point_at(hub, tmp_path, monkeypatch)
        hub.commits[ONE], hub.main = parquet_folder(tmp_path / "one"), ONE
        yield hub


def pipeline(tmp_path: Path, source: object) -> Pipeline:
    return Pipeline(name="p", source=source, batch_rows=20, root=str(tmp_path / "data"), steps=[UNCHANGED])


def read(tmp_path: Path, source: object) -> Manifest:
    """The manifest of a pipeline with that source."""
    return walk(pipeline(tmp_path, source)).known_manifest()


def second_commit(tmp_path: Path, hub: Hub) -> None:
    """A new `main` in which one file of three is another."""
    hub.commits[TWO], hub.main = Path(shutil.copytree(tmp_path / "one", tmp_path / "two")), TWO
    dataset(5).to_parquet(tmp_path / "two/data/train-00001-of-00003.parquet")


def test_a_commit_is_looked_up_once_and_kept(tmp_path, hub):
    assert read(tmp_path, "hf:people/talk").pins == {"hf:people/talk": ONE}
    second_commit(tmp_path, hub)
    again = read(tmp_path, "hf:people/talk")
    assert again.pins == {"hf:people/talk": ONE}
    assert again.rows == 100


def test_a_branch_is_followed_and_only_changed_files_are_fetched(tmp_path, hub):
    source = {"hf": "people/talk::train", "revision": "main"}
    read(tmp_path, source)
    second_commit(tmp_path, hub)
    hub.fetched.clear()
    assert [file.rows for file in read(tmp_path, source).files] == [34, 5, 33]
    parquet = {name for name in hub.fetched if name.endswith("parquet")}
    assert parquet == {"2/data/train-00001-of-00003.parquet"}


def test_a_given_commit_is_read_whatever_main_is(tmp_path, hub):
    second_commit(tmp_path, hub)
    assert read(tmp_path, {"hf": "people/talk", "revision": ONE}).rows == 100


def test_what_is_not_on_the_hub_is_told(tmp_path, hub):
    with pytest.raises(SourceError, match="source hf:people/tlak"):
        read(tmp_path, "hf:people/tlak")
    with pytest.raises(SourceError, match="source hf:people/talk"):
        read(tmp_path, {"hf": "people/talk", "revision": "nosuch"})


def test_once_a_commit_is_read_no_network_is_needed(tmp_path, monkeypatch):
    with hub_server("people/talk") as hub:
        hub.commits[ONE], hub.main = parquet_folder(tmp_path / "one"), ONE
        _point_at(hub, tmp_path, monkeypatch)
        made = pipeline(tmp_path, "hf:people/talk")
        walk(made)
    assert PipelineWork(made).source_is_current()
    moved = pipeline(tmp_path, {"hf": "people/talk", "revision": TWO})
    with pytest.raises(SourceError, match="hf:people/talk"):
        walk(moved)
