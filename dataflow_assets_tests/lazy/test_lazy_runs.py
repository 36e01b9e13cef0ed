"""`write: lazy` by the real command: the same files; signals lose nothing, SIGKILL what it says."""

import signal
from pathlib import Path

import pytest
from dagster import DagsterInstance

from dataflow_assets.control import InMemory, pipeline_lock
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.running_task import running_task
from dataflow_assets.task_state import TaskState, TaskStore
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import Running, environment, finish, run, start
from dataflow_assets_tests.crash.compare import final_files, records, temporaries
from dataflow_assets_tests.crash.gate import GATE_STEPS, gated, wait_until
from dataflow_assets_tests.crash.project import write_project

KILLED, ROWS_FAILED = -9, 5
LONG = pytest.mark.long


def lazy(folder: Path) -> Path:
    """The same pipeline with `write: lazy`."""
    file = folder / "four.yaml"
    file.write_text("write: lazy\n" + file.read_text())
    return folder


def test_the_files_are_those_of_an_immediate_run(project: Path, undisturbed: Path):
    ended = run(lazy(project))
    assert ended.code == ROWS_FAILED
    assert "write: lazy: up to 268.4 MB of a step's batches are held in memory; a SIGKILL" in ended.out
    assert final_files(project / "data") == final_files(undisturbed)


@pytest.mark.parametrize(
    "place",
    [
        "mid_write:30",
        *(
            pytest.param(place, marks=LONG)
            for place in ("before_write:40", "record_renamed:27", "before_event:9")
        ),
    ],
)
def test_a_killed_run_goes_on(project: Path, undisturbed: Path, place: str):
    assert run(lazy(project), kill=place).code == KILLED
    before = records(project / "data")
    assert run(project).code == ROWS_FAILED
    assert final_files(project / "data") == final_files(undisturbed)
    assert temporaries(project / "data") == []
    assert {path: data for path, data in records(project / "data").items() if path in before} == before


def task(folder: Path) -> TaskState | None:
    """What the run says of itself."""
    work = PipelineWork(load_pipeline(folder / "four.yaml"))
    with DagsterInstance.from_config(str(folder / ".dagster_home")) as instance:
        return TaskStore(instance, work.layout.folder).state()


@pytest.fixture
def waiting(tmp_path: Path) -> Running:
    """A run that waits in the fourth batch with three in memory, and has said so."""
    write_project(tmp_path, steps=GATE_STEPS, workers=1)
    process = start(lazy(tmp_path), "run", "four.yaml", env=environment(gated(tmp_path)))
    wait_until(lambda: any(tmp_path.glob("worker_*")), process)
    wait_until(lambda: bool((state := task(tmp_path)) and state.held_batches == 6), process)
    return process


def steps_committed(folder: Path) -> list[str]:
    """The batches of the two steps, step by step."""
    return [path for path in records(folder / "data") if "_step0/" not in path]


def test_a_kill_costs_what_status_says(waiting: Running, tmp_path: Path, command_here: Command):
    assert "6 batches (" in command_here(tmp_path, "status", "four.yaml").out
    assert "asked to commit what it holds in memory" in command_here(tmp_path, "flush", "four.yaml").out
    assert steps_committed(tmp_path) == []
    waiting.kill()
    finish(waiting)
    said = command_here(tmp_path, "status", "four.yaml").out
    assert "was killed; 6 batches (" in said and "held in memory, are made again" in said
    (tmp_path / "gate").unlink()
    assert run(tmp_path).code == 0
    assert len(steps_committed(tmp_path)) == 12


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=LONG)])
def test_a_signal_costs_nothing(waiting: Running, tmp_path: Path, number: signal.Signals):
    waiting.send_signal(number)
    (tmp_path / "gate").unlink()
    ended = finish(waiting)
    assert (ended.code, ended.is_clean) == (3, True)
    before = records(tmp_path / "data")
    assert {"four/four_step1/_commits/in_b00003.json", "four/four_step2/_commits/in_b00003.json"} <= set(
        before
    )
    assert run(tmp_path).code == 0
    assert {path: data for path, data in records(tmp_path / "data").items() if path in before} == before


def test_a_request_to_flush_reaches_the_run(project: Path):
    work = PipelineWork(load_pipeline(lazy(project) / "four.yaml"))
    with DagsterInstance.local_temp(str(project)) as instance:
        store = TaskStore(instance, work.layout.folder)
        with pipeline_lock(work.layout.folder), running_task(store, work) as task:
            task.stop.held = InMemory(1, 10)
            store.ask_flush()
            wait_until(lambda: task.stop.write_now)
        assert store.take_flush() is False


def test_nothing_is_flushed_where_nothing_runs(project: Path, command_here: Command):
    said = command_here(lazy(project), "flush", "four.yaml").out
    assert "four is not running: nothing is held in memory" in said
