"""SIGTERM and SIGKILL: what the state says after them, and that `run` goes on without `resume`."""

import signal
from pathlib import Path

import pytest

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control.slow_project import (
    committed,
    start_slowly,
    state_of,
    status_json,
    store_of,
    wait_for_batches,
    write_slow,
)
from dataflow_assets_tests.crash.command import Finished, environment, finish, start
from dataflow_assets_tests.crash.compare import final_files


def signalled(folder: Path, number: signal.Signals, batches: int = 3) -> Finished:
    process = start_slowly(folder)
    wait_for_batches(folder, process, batches)
    process.send_signal(number)
    return finish(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_partial_state_and_run_goes_on(
    slow: Path, slow_result: dict[str, object], command_here: Command, number: signal.Signals
) -> None:
    assert signalled(slow, number).code == 3
    state = state_of(slow)
    assert (state.state, state.cause, state.who) == ("partial", "signal", number.name)
    assert (state.step, state.batch) == ("slow", committed(slow)[-1])
    assert command_here(slow, "run", "slow.yaml").code == 0
    assert final_files(slow / "data") == slow_result


def test_after_a_kill_the_state_says_so(
    slow: Path, slow_result: dict[str, object], command_here: Command
) -> None:
    assert signalled(slow, signal.SIGKILL).code == -9
    found = status_json(command_here, slow)
    assert found["state"] == "partial" and found["why"].endswith("was killed")
    assert command_here(slow, "run", "slow.yaml").code == 0
    assert final_files(slow / "data") == slow_result
    assert state_of(slow).state == "done"


def test_a_run_of_one_step_leaves_a_partial_state(slow: Path, command_here: Command) -> None:
    assert command_here(slow, "run", "slow.yaml", "--select", "slow").code == 0
    assert (state_of(slow).state, state_of(slow).step) == ("partial", "slow")
    assert command_here(slow, "run", "slow.yaml", "--select", "unique").code == 0
    assert state_of(slow).state == "done"


def test_a_run_that_failed_leaves_its_error(slow: Path, command_here: Command) -> None:
    file = slow / "slow.yaml"
    lossy = "dataflow_assets_tests.crash.lawless_operators:LosesARow"
    file.write_text(file.read_text().replace("drop_duplicates, params: {columns: [text]}", f'"{lossy}"'))
    assert command_here(slow, "run", "slow.yaml").code == 1
    found = status_json(command_here, slow)
    assert found["state"] == "failed" and "loses_a_row" in found["why"]
    assert (state_of(slow).step, state_of(slow).batch) == ("unique", "in_b00004")


def test_two_pipelines_in_one_home_do_not_mix(slow: Path, command_here: Command) -> None:
    write_slow(slow, "other")
    assert command_here(slow, "pause", "slow.yaml").code == 0
    assert command_here(slow, "run", "other.yaml").code == 0
    with store_of(slow, "other") as other, store_of(slow) as paused:
        assert (other.pause(), other.state().state) == (None, "done")  # pyright: ignore
        assert paused.state().state == "paused"  # pyright: ignore


def test_one_pipeline_in_two_roots_is_two_tasks(slow: Path, command_here: Command) -> None:
    assert command_here(slow, "pause", "slow.yaml", "--root", "elsewhere").code == 0
    assert command_here(slow, "run", "slow.yaml").code == 0
    assert command_here(slow, "run", "slow.yaml", "--root", "elsewhere").code == 3


def test_the_state_is_seen_from_another_folder(slow: Path, tmp_path: Path, command_here: Command) -> None:
    assert command_here(slow, "pause", "slow.yaml", "--reason", "moved").code == 0
    here = environment({"DAGSTER_HOME": str(slow / ".dagster_home")})
    for verb, code in (("run", 3), ("status", 0), ("resume", 0), ("run", 0)):
        ended = finish(start(tmp_path, verb, str(slow / "slow.yaml"), env=here))
        assert ended.code == code, ended


def test_status_without_a_dagster_home_reads_the_files_and_makes_none(
    slow: Path, tmp_path: Path, command_here: Command
) -> None:
    assert command_here(slow, "run", "slow.yaml").code == 0
    (slow / ".dagster_home").rename(tmp_path / "gone")
    (slow / ".env").unlink()
    found = status_json(command_here, slow)
    assert (found["state"], found["paused"], found["why"]) == ("done", None, "")
    assert not (slow / ".dagster_home").exists() and not (slow / ".env").exists()
