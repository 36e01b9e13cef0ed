"""SIGKILL at random moments, one after another on the same files: 5 chains of 10 kills."""

import random
import time
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import finish, run, start
from dataflow_assets_tests.crash.compare import final_files, temporaries

KILLS = 10


def killed_at_random(folder: Path, wait_s: float) -> bool:
    """Kills a run some time after its first line; whether it was still there to be killed."""
    process = start(folder, "run", "four.yaml")
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(wait_s)
    process.kill()
    return finish(process).code == -9


def undisturbed_s(folder: Path) -> float:
    """How long a run takes from its first line to its end, on this machine now."""
    process = start(folder, "run", "four.yaml")
    assert process.stdout is not None
    process.stdout.readline()
    began = time.monotonic()
    finish(process)
    return time.monotonic() - began


def move_away(folder: Path, name: str) -> None:
    (folder / "data").rename(folder / name)


@pytest.mark.parametrize("seed", range(5))
def test_ten_kills_in_a_row(project: Path, undisturbed: Path, seed: int) -> None:
    moments = random.Random(seed)
    longest_s = undisturbed_s(project)
    move_away(project, "undisturbed")
    killed = 0
    while killed < KILLS:
        if killed_at_random(project, moments.uniform(0, longest_s)):
            killed += 1
        else:
            assert final_files(project / "data") == final_files(undisturbed)
            move_away(project, f"ended_after_{killed}_{time.monotonic_ns()}")
    assert run(project).code == 5
    assert final_files(project / "data") == final_files(undisturbed)
    assert temporaries(project / "data") == []
