"""SIGKILL in a retry or a put-back: the old batch or the new one is there, and nothing is done twice."""

import json
import shutil
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.compare import temporaries
from dataflow_assets_tests.failed.project import ANSWERED, LOWER, UNIQUE, Queue, do, write_project

STEPS = (ANSWERED, UNIQUE, LOWER)
SICK = (1, 5)
# The first batch of the retry: data (write 1), announcement (write 2), record (write 3).
PLACES = [
    "before_write:1",
    "mid_write:1",
    "before_record:1",
    "record_renamed:1",
    "after_rename:1",
    "before_record:2",
    "record_renamed:2",
    "after_record:2",
    "after_fsync:4",
    "before_event:1",
]
EDIT_PLACES = ["after_fsync:1", "record_renamed:1", "after_rename:1", "after_record:2", "after_fsync:4"]


@pytest.fixture(scope="module")
def failed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of which two rows of different batches failed and would not fail again."""
    folder = write_project(tmp_path_factory.mktemp("ill"), *STEPS, sick=SICK)
    assert do(folder, "run").code == 5
    for name in ("sick", "calls"):
        (folder / name).unlink()
    return folder


@pytest.fixture
def ill(failed_once: Path, queue: Queue) -> Queue:
    """A copy of that project."""
    shutil.copytree(failed_once, queue.folder / "ill")
    return queue.over("ill")


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_retry_leaves_the_old_batch_or_the_new_one(ill: Queue, queue: Queue, place: str) -> None:
    assert do(ill.folder, "retry-failed", kill=place).code == -9
    assert set(ill.calls()) <= set(SICK)
    ill.run()
    assert ill.calls() == {}
    ill.retry()
    assert set(ill.calls()) <= set(SICK)
    assert ill.files() == queue.at("well", *STEPS).files()
    assert temporaries(ill.folder) == [] and not list(ill.folder.rglob("*.next"))


def test_once_announced_a_batch_is_not_made_again(ill: Queue) -> None:
    assert do(ill.folder, "retry-failed", kill="record_renamed:1").code == -9
    assert {row["id"] for row in ill.stored(1, "_failed")} == {1, 5}
    ill.calls()
    ill.run()
    assert {row["id"] for row in ill.stored(1, "_failed")} == {5}
    assert ill.calls() == {}


@pytest.mark.parametrize("place", EDIT_PLACES)
def test_a_killed_put_back_goes_on_with_the_rows_of_the_file(ill: Queue, place: str) -> None:
    rows = [{"row_id": f"in:{number + 1}", "id": number + 100} for number in SICK]
    (ill.folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert do(ill.folder, "put-back", "--step", "answered", "rows.jsonl", kill=place).code == -9
    ill.put_back(*rows)
    assert set(ill.calls()) == {101, 105}
    assert [row["id"] for row in ill.stored(1)] == [0, 101, 2, 3, 4, 105, *range(6, 12)]


@pytest.mark.parametrize("place", EDIT_PLACES)
def test_after_a_killed_put_back_a_retry_or_a_run_reads_the_edits(ill: Queue, place: str) -> None:
    (ill.folder / "rows.jsonl").write_text('{"row_id": "in:2", "id": 101}\n')
    assert do(ill.folder, "put-back", "--step", "answered", "rows.jsonl", kill=place).code == -9
    edited = (ill.folder / "data" / "queue" / "queue_step1" / "_edits" / "_commits").is_dir()
    ill.retry()
    assert set(ill.calls()) <= {1, 5, 101}
    assert [row["id"] for row in ill.stored(1)][1] in ({101} if edited else {1, 101})
