"""Mistakes in input, configuration and usage: one clear line, the right exit code, nothing lost.

The tests may run as root, for whom no permission is missing: a folder or a file in the wrong place
stands for what cannot be read or written.
"""

from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import Finished, command, run
from dataflow_assets_tests.crash.compare import records, rows
from dataflow_assets_tests.crash.project import write_project
from dataflow_assets_tests.resume.runs import edit


def refused(ended: Finished, code: int, *says: str) -> None:
    """Asserts the exit code, and that every line is an error in words that name what is wrong."""
    assert (ended.code, ended.is_clean) == (code, True), ended
    assert all(line.startswith("error: ") for line in ended.err.splitlines()), ended.err
    assert all(text in ended.err for text in says), ended.err


def test_a_missing_file(project: Path) -> None:
    (project / "in.jsonl").unlink()
    refused(run(project), 2, "in.jsonl", "there is no such file")
    assert not (project / "data").exists()


def test_a_file_that_is_gone_later_loses_nothing(project: Path) -> None:
    run(project)
    before = records(project / "data")
    (project / "in.jsonl").unlink()
    refused(run(project), 2, "in.jsonl")
    assert records(project / "data") == before


def test_a_folder_where_a_file_was_meant(project: Path) -> None:
    (project / "in.jsonl").unlink()
    (project / "in.jsonl").mkdir()
    refused(run(project), 2, "in.jsonl", "has no files")


def test_an_unreadable_file(project: Path) -> None:
    (project / "in.jsonl").unlink()
    (project / "in.jsonl").symlink_to("/proc/self/mem")
    refused(run(project), 2, "in.jsonl")


def test_a_folder_with_nothing_that_can_be_read(project: Path) -> None:
    (project / "inbox").mkdir()
    (project / "inbox" / "picture.png").write_bytes(b"\x89PNG")
    refused(run(project, "--input", "inbox"), 2, "inbox", "picture.png")


def test_an_empty_file(project: Path) -> None:
    (project / "in.jsonl").write_bytes(b"")
    refused(run(project), 2, "in.jsonl", "no rows")


def test_a_file_of_only_bad_lines(project: Path) -> None:
    (project / "in.jsonl").write_text("no json\n{]\n")
    refused(run(project), 2, "in.jsonl")


def test_a_file_that_becomes_empty_loses_nothing(project: Path) -> None:
    run(project)
    before = records(project / "data")
    (project / "in.jsonl").write_bytes(b"")
    refused(run(project), 2, "in.jsonl")
    assert records(project / "data") == before


def test_bad_lines_that_shall_fail(project: Path) -> None:
    edit(project / "four.yaml", "path: in.jsonl", "path: in.jsonl, on_bad_line: fail")
    refused(run(project), 2, "in.jsonl", "31")


@pytest.mark.parametrize(
    "place", ["data", "data/four", "data/four/four_step0", "data/four/four_step2/_commits"]
)
def test_a_file_where_a_folder_must_be(project: Path, place: str) -> None:
    (project / place).parent.mkdir(parents=True, exist_ok=True)
    (project / place).write_text("in the way")
    refused(run(project), 1, str(project / place))
    assert (project / place).read_text() == "in the way"


def test_a_folder_where_a_record_must_be(project: Path) -> None:
    (project / "data" / "four" / "four_step1" / "_commits" / "in_b00002.json").mkdir(parents=True)
    refused(run(project), 1, "four_step1/_commits/in_b00002.json")


def test_a_file_as_dagster_home(project: Path) -> None:
    (project / ".dagster_home").write_text("in the way")
    refused(run(project), 1, str(project / ".dagster_home"))


def test_an_unknown_step(project: Path) -> None:
    refused(run(project, "--select", "lowr"), 2, "lowr", "lower")
    assert not (project / "data").exists()


def test_a_step_whose_parent_is_missing(project: Path) -> None:
    refused(run(project, "--select", "long_enough"), 1, "sized")
    assert run(project).code == 5


def test_broken_yaml(project: Path) -> None:
    (project / "four.yaml").write_text("name: four\nsteps: [\n")
    refused(run(project), 2, "four.yaml:")


def test_an_unknown_pipeline(project: Path) -> None:
    refused(command(project, "run", "nothing_like_it"), 2, "nothing_like_it")


def test_an_operator_that_loses_a_row(tmp_path: Path) -> None:
    steps = "steps:\n  - {name: lossy, type: 'dataflow_assets_tests.crash.lawless_operators:LosesARow'}\n"
    write_project(tmp_path, steps=steps)
    refused(run(tmp_path), 1, "lossy", "in_b00002", "loses_a_row", "in:26")
    assert [row["n"] for row in rows(tmp_path / "data", 1)] == list(range(20))
    assert sorted(path.split("/")[-1] for path in records(tmp_path / "data") if "step1" in path) == [
        "in_b00000.json",
        "in_b00001.json",
    ]
