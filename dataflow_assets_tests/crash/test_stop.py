"""SIGINT and SIGTERM in the middle of a batch: it is finished, the run is CANCELED, the next one goes on."""

import os
import signal
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets_tests.crash.command import environment, finish, run, start
from dataflow_assets_tests.crash.compare import final_files, records, rows, temporaries
from dataflow_assets_tests.crash.gate import GATE_STEPS, gated, wait_until
from dataflow_assets_tests.crash.project import write_project


def last_run_status(home: Path) -> dg.DagsterRunStatus:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return instance.get_runs(limit=1)[0].status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [None, 2])
def test_a_signal_ends_the_run_at_a_batch_border(
    tmp_path: Path, number: signal.Signals, workers: int | None
) -> None:
    write_project(tmp_path, steps=GATE_STEPS, workers=workers)
    process = start(tmp_path, "run", "four.yaml", env=environment(gated(tmp_path)))
    wait_until(lambda: any(tmp_path.glob("worker_*")), process)
    process.send_signal(number)
    (tmp_path / "gate").unlink()
    ended = finish(process)
    assert (ended.code, ended.is_clean) == (3, True), ended
    assert number.name in ended.err
    assert "four/four_step2/_commits/in_b00003.json" in records(tmp_path / "data")
    assert temporaries(tmp_path / "data") == []
    assert last_run_status(tmp_path / ".dagster_home") == dg.DagsterRunStatus.CANCELED
    before = records(tmp_path / "data")
    assert run(tmp_path).code == 0
    assert {path: data for path, data in records(tmp_path / "data").items() if path in before} == before


def test_ctrl_c_in_a_terminal_spares_the_workers(tmp_path: Path) -> None:
    write_project(tmp_path, steps=GATE_STEPS, workers=2)
    process = start(tmp_path, "run", "four.yaml", env=environment(gated(tmp_path)), start_new_session=True)
    wait_until(lambda: any(tmp_path.glob("worker_*")), process)
    os.killpg(process.pid, signal.SIGINT)
    (tmp_path / "gate").unlink()
    assert finish(process).code == 3
    assert "four/four_step2/_commits/in_b00003.json" in records(tmp_path / "data")
    assert [row["n"] for row in rows(tmp_path / "data", 2)][:40] == list(range(40))


@pytest.mark.parametrize("place", ["sigint_between:2", "sigterm_between:3", "sigterm_before_steps:1"])
def test_a_signal_between_batches_is_a_stop_too(project: Path, undisturbed: Path, place: str) -> None:
    ended = run(project, kill=place)
    assert (ended.code, ended.is_clean) == (3, True), ended
    assert run(project).code == 5
    assert final_files(project / "data") == final_files(undisturbed)
