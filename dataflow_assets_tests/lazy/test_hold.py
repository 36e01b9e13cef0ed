"""Batches that are held in memory: when they are committed, and in which order."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.control import StopFlag
from dataflow_assets.errors import Stopped, StorageError
from dataflow_assets.io.batch_stream import BatchStream, Committed, Handed, Work
from dataflow_assets.io.step_folder import Origin, StepFolder
from dataflow_assets.operators.operator import Outcome

KEYS = [f"in_b{number:05d}" for number in range(6)]
ROWS = table_of({"row_id": ["in:1"], "text": ["x" * 1000]}, {"row_id": "string", "text": "string"})


def stream(folder: Path, hold_bytes: int, at: Callable[[str], None] = lambda key: None) -> BatchStream:
    """Six batches of a row of a kilobyte; `at` is called when one is made."""

    def compute(key: str, fingerprint: str, handed: Handed) -> Work:
        at(key)
        return Work(Outcome(ROWS), Origin("o", "1", "c", fingerprint, 1, {}, 0.0))

    return BatchStream(
        "s", StepFolder(folder / "s_step1"), KEYS, lambda key, handed: key, compute, hold_bytes=hold_bytes
    )


def committed_before_each(folder: Path, hold_bytes: int) -> dict[str, int]:
    """How many batches are committed when each one is made, by one worker."""
    seen = {}

    def count(key: str) -> None:
        seen[key] = len(list(folder.rglob("_commits/*.json")))

    list(stream(folder, hold_bytes, count).commit_all(StopFlag()))
    return seen


def test_nothing_is_committed_before_the_bound_is_reached(tmp_path: Path):
    assert set(committed_before_each(tmp_path / "much", 10**9).values()) == {0}
    assert committed_before_each(tmp_path / "little", 2500)[KEYS[5]] >= 3


def test_all_are_committed_at_the_end_in_their_order(tmp_path: Path):
    done = list(stream(tmp_path, 10**9).commit_all(StopFlag()))
    assert [committed.record.batch for committed in done] == KEYS
    assert [path.stem for path in sorted(tmp_path.rglob("_commits/*.json"))] == KEYS


def test_a_stop_commits_what_is_held(tmp_path: Path):
    stop = StopFlag()

    def at(key: str) -> None:
        if key == KEYS[2]:
            stop.signal = 15

    done: list[Committed] = []
    with pytest.raises(Stopped):
        done.extend(iter_into(done, stream(tmp_path, 10**9, at).commit_all(stop)))
    assert len(list(tmp_path.rglob("_commits/*.json"))) == len(done) >= 3


def iter_into(done: list[Committed], batches: Iterator[Committed]) -> Iterator[Committed]:
    """Keeps what comes before an error."""
    for committed in batches:
        done.append(committed)
    return iter(())


def test_an_error_commits_what_was_made_before_it(tmp_path: Path):
    def at(key: str) -> None:
        if key == KEYS[3]:
            raise StorageError("full")

    done: list[Committed] = []
    with pytest.raises(StorageError, match="full"):
        iter_into(done, stream(tmp_path, 10**9, at).commit_all(StopFlag()))
    assert [committed.record.batch for committed in done] == KEYS[:3]


def test_what_is_held_is_committed_when_somebody_asks(tmp_path: Path):
    stop = StopFlag()

    def at(key: str) -> None:
        stop.write_now = stop.write_now or key == KEYS[1]

    batches = stream(tmp_path, 10**9, at).commit_all(stop)
    next(batches)
    assert len(list(tmp_path.rglob("_commits/*.json"))) < 6
    assert len(list(batches)) == 5 and stop.write_now is False


def test_the_flag_says_what_a_kill_would_cost(tmp_path: Path):
    stop, seen = StopFlag(), []
    list(stream(tmp_path, 10**9, lambda key: seen.append(stop.held)).commit_all(stop))
    assert seen[0] == (0, 0) and 3 <= seen[5].batches <= 5
    assert seen[5].bytes == seen[5].batches * ROWS.nbytes
    assert stop.held == (0, 0)


def test_batches_that_are_there_wait_for_nothing(tmp_path: Path):
    list(stream(tmp_path, 10**9).commit_all(StopFlag()))
    again = stream(tmp_path, 10**9, partial(pytest.fail, "made again")).commit_all(StopFlag())
    assert next(again).reused
