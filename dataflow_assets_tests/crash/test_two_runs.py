"""Two runs of one pipeline at once: the second is refused, and the lock dies with its holder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import Running, environment, finish, run, start
from dataflow_assets_tests.crash.compare import final_files
from dataflow_assets_tests.crash.gate import GATE_STEPS, gated, wait_until
from dataflow_assets_tests.crash.project import write_project


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Running]:
    """A run that waits in the middle of its second step until `gate` is gone."""
    write_project(tmp_path, steps=GATE_STEPS)
    process = start(tmp_path, "run", "four.yaml", env=environment(gated(tmp_path)))
    wait_until(lambda: any(tmp_path.glob("worker_*")), process)
    yield process
    process.kill()
    process.wait()


def test_the_second_is_refused_and_names_the_first(waiting: Running, tmp_path: Path) -> None:
    second = run(tmp_path)
    assert second.code == 2
    assert second.err.startswith("error: ") and f"process {waiting.pid} " in second.err


def test_a_killed_holder_frees_the_lock(waiting: Running, tmp_path: Path) -> None:
    waiting.kill()
    assert finish(waiting).code == -9
    (tmp_path / "gate").unlink()
    assert run(tmp_path).code == 0
    write_project(tmp_path / "other", steps=GATE_STEPS)
    assert run(tmp_path / "other").code == 0
    assert final_files(tmp_path / "data") == final_files(tmp_path / "other" / "data")
