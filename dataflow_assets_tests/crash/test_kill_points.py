"""SIGKILL at every kind of place; then the same command ends as if nothing had happened."""

from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import environment, run
from dataflow_assets_tests.crash.compare import final_files, materialized, records, temporaries
from dataflow_assets_tests.crash.driver import POINTS
from dataflow_assets_tests.crash.project import STEP_NAMES, write_project

KILLED, ROWS_FAILED = -9, 5
KILLS = ("before_", "mid_", "after_", "record_")
BATCHES = [f"in_b{number:05d}" for number in range(6)]
AT = {
    "before_write": (1, 40),
    "mid_write": (3, 80),
    "after_fsync": (2, 50),
    "after_rename": (9, 33),
    "before_record": (22,),
    "record_renamed": (27,),
    "after_record": (6, 41),
    "before_event": (1, 25),
    "before_manifest": (1,),
    "after_manifest": (1,),
    "before_registering": (1,),
    "after_registering": (1,),
}
PLACES = [f"{point}:{number}" for point, numbers in AT.items() for number in numbers]


def goes_on_right(folder: Path, undisturbed: Path) -> None:
    """Asserts that the command, run again, makes what is missing and nothing else."""
    root = folder / "data"
    before = records(root)
    assert run(folder).code == ROWS_FAILED
    assert final_files(root) == final_files(undisturbed)
    assert temporaries(root) == []
    assert {path: data for path, data in records(root).items() if path in before} == before


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_run_goes_on(project: Path, undisturbed: Path, place: str) -> None:
    assert run(project, kill=place).code == KILLED
    goes_on_right(project, undisturbed)
    for step in STEP_NAMES:
        assert sorted(materialized(project / ".dagster_home", step)) == BATCHES


def test_every_point_is_tried() -> None:
    assert set(AT) == {point for point in POINTS if point.startswith(KILLS)}


def test_a_kill_while_kept_batches_are_replaced(project: Path, undisturbed: Path) -> None:
    run(project)
    assert run(project, "--fresh", kill="after_rename:20").code == KILLED
    assert run(project).code == ROWS_FAILED
    assert final_files(project / "data") == final_files(undisturbed)


def test_a_killed_worker_is_replaced(tmp_path: Path, undisturbed: Path) -> None:
    write_project(tmp_path, workers=2)
    extra = {"KILL_FROM_ROW": "self", "KILLED_MARKER": str(tmp_path / "killed")}
    assert run(tmp_path, env=environment(extra)).code == ROWS_FAILED
    assert (tmp_path / "killed").exists()
    assert final_files(tmp_path / "data") == final_files(undisturbed)


def test_a_run_killed_while_a_worker_is_in_a_row(tmp_path: Path, undisturbed: Path) -> None:
    write_project(tmp_path, workers=2)
    extra = {"KILL_FROM_ROW": "parent", "KILLED_MARKER": str(tmp_path / "killed")}
    assert run(tmp_path, env=environment(extra)).code == KILLED
    goes_on_right(tmp_path, undisturbed)
