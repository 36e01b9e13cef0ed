"""A real DVC in a real git repository: `dvc repro`, `push` and `pull` on the stage that we write."""

from pathlib import Path

import pytest
import yaml

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.compare import final_files, records
from dataflow_assets_tests.versions.conftest import Repository


def change(folder: Path, before: str, after: str) -> None:
    text = (folder / "pages.yaml").read_text()
    assert before in text
    (folder / "pages.yaml").write_text(text.replace(before, after))


def stage(folder: Path) -> dict:
    return yaml.safe_load((folder / "dvc.yaml").read_text())["stages"]["pages"]


def test_a_fresh_clone_pulls_the_same_files_and_has_nothing_to_do(
    repository: Repository, tmp_path: Path
) -> None:
    repository.ours("dvc", "pages.yaml")
    repository.dvc("repro")
    repository.commit("one")
    repository.git("tag", "v1")
    repository.dvc("push")
    other = repository.clone(tmp_path / "clone")
    other.dvc("pull")
    assert final_files(other.folder / "data") == final_files(repository.folder / "data")
    assert "nothing to do" in other.ours("run", "pages.yaml")
    assert "Data and pipelines are up to date" in other.dvc("status")


def test_repro_makes_again_what_a_changed_parameter_touches_and_a_tag_brings_the_old_rows_back(
    repository: Repository,
) -> None:
    folder = repository.folder
    repository.ours("dvc", "pages.yaml")
    repository.dvc("repro")
    repository.commit("one")
    first, made = final_files(folder / "data"), records(folder / "data")
    assert "didn't change, skipping" in repository.dvc("repro")
    change(folder, "min_chars: 12", "min_chars: 17")
    assert "min_chars" in repository.dvc("params", "diff")
    repository.dvc("repro")
    again = {path for path, data in records(folder / "data").items() if made[path] != data}
    assert again and all("pages_step3/" in path for path in again)
    assert '"min_chars": 17' in (folder / "pages.lock.json").read_text()
    repository.git("checkout", "-q", "--", "pages.yaml", "dvc.lock", "pages.lock.json")
    repository.dvc("checkout", "-q")
    assert final_files(folder / "data") == first


def test_the_stage_names_all_that_decides_the_rows(pages: Path, command_here: Command) -> None:
    assert command_here(pages, "dvc", "pages.yaml").code == 0
    found = stage(pages)
    assert found["deps"] == ["in.jsonl", "marks.py", "words.txt"]
    assert found["params"] == [{"pages.yaml": ["source", "batch_rows", "steps"]}]
    assert found["outs"][0] == {"data/pages": {"persist": True}}
    assert "always_changed" not in found


def test_an_operator_in_a_package_is_a_dependency_too(pages: Path, command_here: Command) -> None:
    (pages / "marks").mkdir()
    (pages / "marks.py").rename(pages / "marks" / "__init__.py")
    assert command_here(pages, "dvc", "pages.yaml").code == 0
    assert stage(pages)["deps"] == ["in.jsonl", "marks/__init__.py", "words.txt"]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\nvars:\n- x: 1\nstages:\n  other:\n    cmd: echo  # kept\n",
        "stages:\n  pages:\n    cmd: old\n    deps:\n    - gone\n  other:\n    cmd: echo\n",
    ],
)
def test_what_else_is_in_dvc_yaml_stays_as_it_is(pages: Path, command_here: Command, before: str) -> None:
    (pages / "dvc.yaml").write_text(before)
    assert command_here(pages, "dvc", "pages.yaml").code == 0
    after = (pages / "dvc.yaml").read_text()
    assert [
        line for line in before.splitlines() if "old" not in line and "gone" not in line and line not in after
    ] == []
    assert len(yaml.safe_load(after)["stages"]) == max(1, before.count("cmd:") - before.count("old") + 1)


@pytest.mark.parametrize(
    "strange", ["stages: {pages: {cmd: old}}\n", "stages:\n    pages:\n        cmd: old\n", "- 1\n", "a: [\n"]
)
def test_a_dvc_yaml_of_another_layout_is_left_alone(pages: Path, command_here: Command, strange: str) -> None:
    (pages / "dvc.yaml").write_text(strange)
    done = command_here(pages, "dvc", "pages.yaml")
    assert (done.code, (pages / "dvc.yaml").read_text()) == (2, strange), done


def test_results_outside_of_the_repository_are_refused(pages: Path, command_here: Command) -> None:
    done = command_here(pages, "dvc", "pages.yaml", "--root", "../elsewhere")
    assert done.code == 2 and "outside of" in done.err
    assert not (pages / "dvc.yaml").exists()


@pytest.mark.parametrize("cache", ["cache", "../cache"])
def test_results_on_an_object_store_are_refused_by_their_url(
    pages: Path, command_here: Command, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setenv("DATAFLOW_CACHE", str(pages / cache))
    done = command_here(pages, "dvc", "pages.yaml", "--root", "memory://bucket/data")
    assert done.code == 2 and "the results are in memory://bucket/data/pages, an object store" in done.err
    assert str(pages) not in done.err and not (pages / "dvc.yaml").exists()


def test_failed_rows_may_be_allowed(pages: Path, command_here: Command) -> None:
    command_here(pages, "dvc", "pages.yaml", "--allow-failed")
    assert stage(pages)["cmd"][0] == "dataflow-assets run pages.yaml --root data || test $? -eq 5"
