"""SIGKILL at every kind of place; then the same command, here or elsewhere, ends as if nothing was."""

from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import finish
from dataflow_assets_tests.crash.compare import materialized, rows
from dataflow_assets_tests.crash.project import STEP_NAMES
from dataflow_assets_tests.crash.test_kill_points import AT, BATCHES, KILLED, ROWS_FAILED
from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.objects.bucket import Bucket, Machine, new_machine

PLACES = [f"{point}:{numbers[-1]}" for point, numbers in AT.items()]
REQUESTS = ["before_note:50", "after_lease:1"]
QUICK = ["before_record:22", "record_renamed:27"]
LONG = [place for place in PLACES + REQUESTS if place not in QUICK]


def records(bucket: Bucket) -> dict[str, bytes]:
    names = [name for name in bucket.names() if "/_commits/" in name and name.endswith(".json")]
    return {name: bucket.read(name) for name in names}


def goes_on_right(machine: Machine, undisturbed: dict[str, object], to: Path) -> None:
    """Asserts that the command, run again, makes what is missing and nothing else."""
    before = records(machine.bucket)
    finished = machine.run()
    assert finished.code == ROWS_FAILED, finished
    assert machine.bucket.content(to) == undisturbed
    assert {name: data for name, data in records(machine.bucket).items() if name in before} == before
    for step in STEP_NAMES:
        assert sorted(materialized(machine.folder / ".dagster_home", step)) == BATCHES


def killed_then_goes_on(machine: Machine, undisturbed: dict[str, object], place: str, to: Path) -> None:
    assert machine.run(kill=place).code == KILLED
    goes_on_right(machine, undisturbed, to)


def is_done_for(other: Machine) -> None:
    """Waits until another machine sees the pipeline as done, once the killed one's lease has run out."""
    wait_until(lambda: "four: done" in other.command("status", "four.yaml").out)


@pytest.mark.parametrize("place", QUICK)
def test_a_killed_run_goes_on(machine, undisturbed_objects, tmp_path, place: str) -> None:
    killed_then_goes_on(machine, undisturbed_objects, place, tmp_path / "end")


@pytest.mark.long
@pytest.mark.parametrize("place", LONG)
def test_a_killed_run_goes_on_wherever_it_was(machine, undisturbed_objects, tmp_path, place: str) -> None:
    killed_then_goes_on(machine, undisturbed_objects, place, tmp_path / "end")


def test_another_machine_goes_on(machine, bucket, undisturbed_objects, tmp_path) -> None:
    assert machine.run(kill="after_record:12").code == KILLED
    other = new_machine(tmp_path / "other", bucket)
    goes_on_right(other, undisturbed_objects, tmp_path / "end")
    assert "nothing to do" in machine.run().out


@pytest.mark.long
def test_a_kill_while_kept_batches_are_replaced(machine, undisturbed_objects, tmp_path) -> None:
    machine.run()
    assert machine.run("--fresh", kill="after_rename:20").code == KILLED
    assert machine.run().code == ROWS_FAILED
    assert machine.bucket.content(tmp_path / "end") == undisturbed_objects


def test_a_batch_that_is_replaced_is_there_until_the_new_one_is(machine, tmp_path) -> None:
    machine.run()
    assert machine.run("--fresh", kill="after_fsync:6").code == KILLED
    is_done_for(new_machine(tmp_path / "other", machine.bucket))


@pytest.mark.long
@pytest.mark.parametrize("place", ["after_fsync:1", "after_rename:1"])
def test_a_killed_put_back_leaves_the_old_batch_or_the_new_one(machine, bucket, tmp_path, place: str) -> None:
    machine.run()
    machine.command("failed", "four.yaml", "--to", "rows.jsonl")
    file = machine.folder / "rows.jsonl"
    file.write_text(file.read_text().replace('"n":13', '"n":99'))
    arguments = ("put-back", "four.yaml", "--step", "sized", "rows.jsonl")
    assert finish(machine.start(*arguments, kill=place)).code == KILLED
    is_done_for(new_machine(tmp_path / "other", bucket))
    assert finish(machine.start(*arguments)).code == 0
    assert 99 in [row["n"] for row in rows(bucket.downloaded(tmp_path / "end") / "data", 2)]
    assert not [name for name in bucket.names() if name.endswith((".tmp", ".next"))]
