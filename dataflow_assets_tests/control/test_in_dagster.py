"""A pause in Dagster: runs are CANCELED and do nothing, jobs pause and resume, the sensor skips."""

import json
import signal
import sys
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.automation import daily_schedule, read_source_job, watch_sensor
from dataflow_assets.control import StopFlag
from dataflow_assets.definitions import definitions_of
from dataflow_assets.home import HOME_FOLDER
from dataflow_assets.mirror import register_batches
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.task_state import new_pause
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control.slow_project import (
    SLOW,
    committed,
    run_statuses,
    state_of,
    status_json,
    store_of,
    wait_for_batches,
    waiting_run,
    work_of,
)
from dataflow_assets_tests.crash.command import Finished, Running, environment, finish
from dataflow_assets_tests.crash.compare import final_files

RANGE = ("--partition-range", "in_b00000...in_b00039")


def start_dagster(folder: Path, *arguments: str) -> Running:
    """A `dagster` command on the definitions, with the pipeline in `folder` among them."""
    paths = {"DATAFLOW_PIPELINES": str(folder), "DATAFLOW_ROOT": str(folder / "data"), **SLOW}
    home = {"DAGSTER_HOME": str(folder / HOME_FOLDER)}
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "dagster",
        *arguments,
        "-m",
        "dataflow_assets.definitions",
    ]
    return Running(command, cwd=folder, env=environment({**paths, **home}))


def materialize(folder: Path, *arguments: str) -> Finished:
    return finish(start_dagster(folder, "asset", "materialize", *arguments))


def job(folder: Path, name: str, config: dict | None = None) -> Finished:
    file = folder / "run_config"
    file.write_text(json.dumps(config or {}))
    return finish(start_dagster(folder, "job", "execute", "-j", name, "-c", str(file)))


@pytest.fixture
def read(slow: Path, command_here: Command) -> Path:
    """The slow project, in which the source was read and nothing else done."""
    assert command_here(slow, "init").code == 0
    work = work_of(slow / "slow.yaml")
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    with dg.DagsterInstance.from_config(str(slow / HOME_FOLDER)) as instance:
        register_batches(instance, "slow", work.known_manifest().batches)
    return slow


def test_a_run_of_dagster_while_paused_is_canceled_and_does_nothing(
    read: Path, command_here: Command
) -> None:
    assert command_here(read, "pause", "slow.yaml", "--reason", "no server").code == 0
    before = final_files(read / "data")
    refused = materialize(read, "--select", "key:slow/slow", *RANGE)
    told = refused.out + refused.err
    assert "no server" in told, told
    assert run_statuses(read)[0] == "CANCELED"
    assert final_files(read / "data") == before
    assert materialize(read, "--select", "key:slow/source").code != 0
    assert run_statuses(read)[:2] == ["CANCELED", "CANCELED"]


def test_a_run_of_dagster_is_paused_where_it_is_and_the_command_goes_on(
    read: Path, slow_result: dict[str, object], command_here: Command
) -> None:
    process = start_dagster(read, "asset", "materialize", "--select", "key:slow/slow", *RANGE)
    wait_for_batches(read, process, 2)
    with store_of(read) as store:
        store.ask_pause(new_pause(load_pipeline(read / "slow.yaml"), "enough"))
    finish(process)
    state = state_of(read)
    assert (run_statuses(read)[0], state.state, state.batch) == ("CANCELED", "paused", committed(read)[-1])
    assert command_here(read, "resume", "slow.yaml").code == 0
    assert final_files(read / "data") == slow_result


def test_a_run_that_the_ui_terminates_is_canceled_and_says_so(read: Path) -> None:
    process = start_dagster(read, "asset", "materialize", "--select", "key:slow/slow", *RANGE)
    wait_for_batches(read, process, 2)
    with dg.DagsterInstance.from_config(str(read / HOME_FOLDER)) as instance:
        instance.report_run_canceling(instance.get_runs(limit=1)[0])
    process.send_signal(signal.SIGINT)
    finish(process)
    state = state_of(read)
    assert (run_statuses(read)[0], state.state, state.who) == ("CANCELED", "partial", "Dagster UI")
    assert state.batch == committed(read)[-1]


def test_the_jobs_pause_a_running_command_and_resume_it(
    slow: Path, slow_result: dict[str, object], command_here: Command
) -> None:
    with waiting_run(slow) as process:
        assert job(slow, "slow_pause", {"reason": "from the UI"}).code == 0
    assert finish(process).code == 3
    found = status_json(command_here, slow)["paused"]
    assert (found["who"], found["why"], found["batch"]) == ("Dagster UI", "from the UI", committed(slow)[-1])
    assert job(slow, "slow_resume").code == 0
    assert final_files(slow / "data") == slow_result
    assert run_statuses(slow)[:2] == ["SUCCESS", "SUCCESS"]


def test_a_resume_job_that_is_paused_again_is_canceled(slow: Path, command_here: Command) -> None:
    assert command_here(slow, "pause", "slow.yaml").code == 0
    process = start_dagster(slow, "job", "execute", "-j", "slow_resume")
    wait_for_batches(slow, process, 2)
    with store_of(slow) as store:
        store.ask_pause(new_pause(load_pipeline(slow / "slow.yaml"), "again"))
    finish(process)
    assert (run_statuses(slow), state_of(slow).why) == (["CANCELED", "CANCELED"], "again")


def test_sensor_and_schedule_skip_a_paused_pipeline_and_say_why(slow: Path, command_here: Command) -> None:
    assert command_here(slow, "pause", "slow.yaml", "--reason", "a holiday").code == 0
    work = work_of(slow / "slow.yaml")
    repository = definitions_of([work.pipeline]).get_repository_def()
    schedule = daily_schedule(work.pipeline, read_source_job(work.pipeline))
    with dg.DagsterInstance.from_config(str(slow / HOME_FOLDER)) as instance:
        with dg.build_sensor_context(instance, repository_def=repository) as context:
            assert "because a holiday" in (watch_sensor(work).evaluate_tick(context).skip_message or "")
        with dg.build_schedule_context(instance, repository_def=repository) as context:
            assert "because a holiday" in (schedule.evaluate_tick(context).skip_message or "")


def test_every_pipeline_has_its_jobs(slow: Path) -> None:
    definitions = definitions_of([load_pipeline(slow / "slow.yaml")])
    assert definitions.resolve_job_def("slow_pause").description.startswith("Pauses slow")  # pyright: ignore
    assert definitions.resolve_job_def("slow_resume").description.startswith("Goes on with slow")  # pyright: ignore
