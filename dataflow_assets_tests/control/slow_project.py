"""A pipeline with a slow step in the middle: 40 batches of 5 rows, to be paused and stopped."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from dataflow_assets.home import HOME_FOLDER
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.task_state import TaskState, TaskStore
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import Running, environment, start
from dataflow_assets_tests.crash.gate import gated, wait_until
from dataflow_assets_tests.crash.project import row, write_rows

BATCHES = 40
SLOW = {"ROW_S": "0.02"}
_PIPELINE = """name: NAME
source: {path: in.jsonl}
batch_rows: 5
workers: 1
root: data
steps:
  - name: slow
    type: map_python
    params: {function: "dataflow_assets_tests.control.row_functions:slowly", columns: {chars: int64}}
  - {name: unique, type: drop_duplicates, params: {columns: [text]}}
"""


def write_slow(folder: Path, name: str = "slow", batches: int = BATCHES) -> Path:
    """The project in `folder`; returns its pipeline file `<name>.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "in.jsonl", [row(number) for number in range(batches * 5)], bad_line_after=None)
    file = folder / f"{name}.yaml"
    file.write_text(_PIPELINE.replace("NAME", name))
    return file


def start_slowly(folder: Path, *arguments: str, name: str = "slow") -> Running:
    """`dataflow-assets run` with 0.1 s a batch; arguments take the place of `run`."""
    return start(folder, *(arguments or ("run",)), f"{name}.yaml", env=environment(SLOW))


@contextlib.contextmanager
def waiting_run(folder: Path, **more: str) -> Iterator[Running]:
    """A run that stands in its eighth batch until the end of the block, however long that takes."""
    process = start(folder, "run", "slow.yaml", env=environment({**SLOW, **gated(folder), **more}))
    try:
        wait_until(lambda: any(folder.glob("worker_*")), process)
        yield process
    finally:
        (folder / "gate").unlink()


def committed(folder: Path, name: str = "slow") -> list[str]:
    """The batches of the slow step that exist."""
    return sorted(
        path.stem for path in (folder / "data" / name / f"{name}_step1" / "_commits").glob("*.json")
    )


def wait_for_batches(folder: Path, process: Running, count: int, name: str = "slow") -> None:
    """Waits until the slow step has this many batches, or its run is over."""
    wait_until(lambda: len(committed(folder, name)) >= count or process.poll() is not None)


def work_of(file: Path) -> PipelineWork:
    """The pipeline of a file with its folders."""
    pipeline = load_pipeline(file)
    return PipelineWork(pipeline.with_changes(root=str(file.parent / "data")))


@contextlib.contextmanager
def store_of(folder: Path, name: str = "slow", home: Path | None = None) -> Iterator[TaskStore]:
    """Where the state of a pipeline stands, in this process, which is another than its run's."""
    with dg.DagsterInstance.from_config(str(home or folder / HOME_FOLDER)) as instance:
        yield TaskStore(instance, folder / "data" / name)


def state_of(folder: Path, name: str = "slow") -> TaskState:
    """The state of a pipeline that was run."""
    with store_of(folder, name) as store:
        state = store.state()
    assert state is not None
    return state


def status_json(command: Command, folder: Path) -> dict:
    """What `status --json` says of the slow pipeline."""
    return json.loads(command(folder, "status", "slow.yaml", "--json").out)


def run_statuses(folder: Path) -> list[str]:
    """The statuses of all runs of Dagster, the newest first."""
    with dg.DagsterInstance.from_config(str(folder / HOME_FOLDER)) as instance:
        return [run.status.value for run in instance.get_runs()]
