"""SIGKILL at random moments, one after another on the same files: 5 chains of 10 kills."""

import random
import shutil
import time
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import finish, run, start
from dataflow_assets_tests.crash.compare import final_files, temporaries
from dataflow_assets_tests.crash.gate import wait_until
from dataflow_assets_tests.crash.project import write_project

KILLS = 10


def killed_at_random(folder: Path, wait_s: float) -> bool:
    """Kills a run some time after its first line; whether it was still there to be killed."""
    process = start(folder, "run", "four.yaml")
    wait_until(lambda: process.texts()[0] != "", process)
    time.sleep(wait_s)
    process.kill()
    return finish(process).code == -9


@pytest.fixture(scope="module")
def longest_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long a run takes from its first line to its end, on this machine now."""
    folder = tmp_path_factory.mktemp("measured")
    write_project(folder)
    process = start(folder, "run", "four.yaml")
    wait_until(lambda: process.texts()[0] != "", process)
    began = time.monotonic()
    finish(process)
    return time.monotonic() - began


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_ten_kills_in_a_row(project: Path, undisturbed: Path, longest_s: float, seed: int) -> None:
    moments = random.Random(seed)
    killed = 0
    while killed < KILLS:
        if killed_at_random(project, moments.uniform(0, longest_s)):
            killed += 1
        else:
            assert final_files(project / "data") == final_files(undisturbed)
            shutil.rmtree(project / "data")
            longest_s *= 0.8
    assert run(project).code == 5
    assert final_files(project / "data") == final_files(undisturbed)
    assert temporaries(project / "data") == []
