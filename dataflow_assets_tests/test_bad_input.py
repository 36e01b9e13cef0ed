"""Mistakes in input, configuration and usage: one clear line, the right exit code, nothing lost.

The tests may run as root, for whom no permission is missing: a folder or a file in the wrong place
stands for what cannot be read or written.
"""

from pathlib import Path

import pytest

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import Finished
from dataflow_assets_tests.crash.compare import records, rows
from dataflow_assets_tests.crash.project import write_project
from dataflow_assets_tests.resume.runs import edit


def refused(ended: Finished, code: int, *says: str) -> None:
    """Asserts the exit code, and that every line is an error in words that name what is wrong."""
    assert (ended.code, ended.is_clean) == (code, True), ended
    assert all(line.startswith("error: ") for line in ended.err.splitlines()), ended.err
    assert all(text in ended.err for text in says), ended.err


def test_a_missing_file(command_here: Command, project: Path) -> None:
    (project / "in.jsonl").unlink()
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl", "there is no such file")
    assert not (project / "data").exists()


def test_a_file_that_is_gone_later_loses_nothing(command_here: Command, project: Path) -> None:
    command_here(project, "run", "four.yaml")
    before = records(project / "data")
    (project / "in.jsonl").unlink()
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl")
    assert records(project / "data") == before


def test_a_folder_where_a_file_was_meant(command_here: Command, project: Path) -> None:
    (project / "in.jsonl").unlink()
    (project / "in.jsonl").mkdir()
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl", "has no files")


def test_an_unreadable_file(command_here: Command, project: Path) -> None:
    (project / "in.jsonl").unlink()
    (project / "in.jsonl").symlink_to("/proc/self/mem")
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl")


def test_a_folder_with_nothing_that_can_be_read(command_here: Command, project: Path) -> None:
    (project / "inbox").mkdir()
    (project / "inbox" / "picture.png").write_bytes(b"\x89PNG")
    refused(command_here(project, "run", "four.yaml", "--input", "inbox"), 2, "inbox", "picture.png")


def test_an_empty_file(command_here: Command, project: Path) -> None:
    (project / "in.jsonl").write_bytes(b"")
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl", "no rows")


def test_a_file_of_only_bad_lines(command_here: Command, project: Path) -> None:
    (project / "in.jsonl").write_text("no json\n{]\n")
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl")


def test_a_file_that_becomes_empty_loses_nothing(command_here: Command, project: Path) -> None:
    command_here(project, "run", "four.yaml")
    before = records(project / "data")
    (project / "in.jsonl").write_bytes(b"")
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl")
    assert records(project / "data") == before


def test_bad_lines_that_shall_fail(command_here: Command, project: Path) -> None:
    edit(project / "four.yaml", "path: in.jsonl", "path: in.jsonl, on_bad_line: fail")
    refused(command_here(project, "run", "four.yaml"), 2, "in.jsonl", "31")


@pytest.mark.parametrize(
    "place", ["data", "data/four", "data/four/four_step0", "data/four/four_step2/_commits"]
)
def test_a_file_where_a_folder_must_be(command_here: Command, project: Path, place: str) -> None:
    (project / place).parent.mkdir(parents=True, exist_ok=True)
    (project / place).write_text("in the way")
    refused(command_here(project, "run", "four.yaml"), 1, str(project / place))
    assert (project / place).read_text() == "in the way"


def test_a_folder_where_a_record_must_be(command_here: Command, project: Path) -> None:
    (project / "data" / "four" / "four_step1" / "_commits" / "in_b00002.json").mkdir(parents=True)
    refused(command_here(project, "run", "four.yaml"), 1, "four_step1/_commits/in_b00002.json")


def test_a_file_as_dagster_home(command_here: Command, project: Path) -> None:
    (project / ".dagster_home").write_text("in the way")
    refused(command_here(project, "run", "four.yaml"), 1, str(project / ".dagster_home"))


def test_an_unknown_step(command_here: Command, project: Path) -> None:
    refused(command_here(project, "run", "four.yaml", "--select", "lowr"), 2, "lowr", "lower")
    assert not (project / "data").exists()


def test_a_step_whose_parent_is_missing(command_here: Command, project: Path) -> None:
    refused(command_here(project, "run", "four.yaml", "--select", "long_enough"), 1, "sized")
    assert command_here(project, "run", "four.yaml").code == 5


def test_broken_yaml(command_here: Command, project: Path) -> None:
    (project / "four.yaml").write_text("name: four\nsteps: [\n")
    refused(command_here(project, "run", "four.yaml"), 2, "four.yaml:")


def test_an_unknown_pipeline(command_here: Command, project: Path) -> None:
    refused(command_here(project, "run", "nothing_like_it"), 2, "nothing_like_it")


def test_an_operator_that_loses_a_row(command_here: Command, tmp_path: Path) -> None:
    steps = "steps:\n  - {name: lossy, type: 'dataflow_assets_tests.crash.lawless_operators:LosesARow'}\n"
    write_project(tmp_path, steps=steps)
    refused(command_here(tmp_path, "run", "four.yaml"), 1, "lossy", "in_b00002", "loses_a_row", "in:26")
    assert [row["n"] for row in rows(tmp_path / "data", 1)] == list(range(20))
    assert sorted(path.split("/")[-1] for path in records(tmp_path / "data") if "step1" in path) == [
        "in_b00000.json",
        "in_b00001.json",
    ]
