"""An export refuses what would destroy its own pipeline: the source, and the files of the root."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.append import append_step
from dataflow_assets.exports.file import export_step
from dataflow_assets.exports.writing import export_folder
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.torch.made_steps import made
from dataflow_assets_tests.walk import pipeline, walk

Export = Callable[[PipelineWork, Path], object]


def as_file(work: PipelineWork, to: Path) -> None:
    export_step(work, None, to)


def appended(work: PipelineWork, to: Path) -> None:
    append_step(work, None, to)


def as_folder(work: PipelineWork, to: Path) -> None:
    export_folder(work, None, to, "hf")


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def work(tmp_path: Path) -> PipelineWork:
    return made(tmp_path / "project", [{"text": "A"}, {"text": "B"}])


def refused(export: Export, work: PipelineWork, to: Path, message: str) -> None:
    before = contents(to.parent)
    with pytest.raises(ConfigError, match=message):
        export(work, to)
    assert contents(to.parent) == before


@pytest.mark.parametrize("export", [as_file, appended])
@pytest.mark.parametrize("link", [None, "symbolic"])
def test_the_source_is_not_replaced(work: PipelineWork, tmp_path: Path, export: Export, link: str | None):
    to = tmp_path / "project" / "in.jsonl"
    if link:
        (tmp_path / "link.jsonl").symlink_to(to)
        to = tmp_path / "link.jsonl"
    refused(export, work, to, "is the pipeline's own source")


@pytest.mark.parametrize("export", [as_file, appended, as_folder])
def test_the_files_of_the_root_are_not_replaced_nor_added_to(work: PipelineWork, export: Export):
    refused(export, work, work.layout.step(1).path / "new.jsonl", "where a pipeline keeps its own files")
    refused(export, work, work.layout.folder / "new.jsonl", "where a pipeline keeps its own files")


def test_a_folder_that_holds_the_source_or_the_root_is_not_replaced(work: PipelineWork, tmp_path: Path):
    (tmp_path / "project" / ".dataflow_assets").touch()  # as an earlier export left it
    refused(as_folder, work, tmp_path / "project", "above .* where a pipeline keeps its own files")
    elsewhere = walk(pipeline(tmp_path / "root", tmp_path / "project" / "in.jsonl"))
    refused(as_folder, elsewhere, tmp_path / "project", "is a folder of the pipeline's own source")


@pytest.mark.parametrize("export", [as_file, appended])
def test_an_export_beside_the_source_or_in_the_root_goes_through(
    work: PipelineWork, tmp_path: Path, export: Export
):
    for folder in (tmp_path / "project", work.layout.root):
        for _ in range(2):
            export(work, folder / "out.jsonl")
        assert (folder / "out.jsonl").read_text() == '{"text":"A"}\n{"text":"B"}\n'


@pytest.mark.parametrize("export", [as_file, appended])
def test_a_link_stays_and_what_it_leads_to_is_written(work: PipelineWork, tmp_path: Path, export: Export):
    link, target = tmp_path / "out.jsonl", tmp_path / "large_disk" / "out.jsonl"
    link.symlink_to(target)
    export(work, link)
    assert link.is_symlink()
    assert target.read_text() == '{"text":"A"}\n{"text":"B"}\n'


@pytest.mark.parametrize("export", [as_file, appended, as_folder])
@pytest.mark.parametrize("to", ["s3://bucket/out.jsonl", "hf://datasets/me/out.jsonl"])
def test_a_url_is_no_folder_here(
    work: PipelineWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: Export, to: str
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="is a URL"):
        export(work, Path(to))
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


@pytest.mark.parametrize("to", ["notes.md", "p.yaml"])
@pytest.mark.parametrize("command", ["lock", "failed", "profile", "report"])
def test_no_command_writes_over_what_its_pipeline_is_made_of(
    command_here: Command, tmp_path: Path, command: str, to: str
):
    (tmp_path / "notes.md").write_text("A\nB\n")
    (tmp_path / "p.yaml").write_text(
        "name: p\nsource: {path: notes.md, format: txt}\n"
        "steps:\n  - {name: all, type: sample, params: {share: 1}}\n"
    )
    assert command_here(tmp_path, "run", "p.yaml").code == 0
    before = contents(tmp_path)
    option = "--card" if command == "report" else "--to"
    assert command_here(tmp_path, command, "p.yaml", option, to).code == 2
    assert contents(tmp_path) == before
