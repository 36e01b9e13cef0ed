"""The Dagster job `<pipeline>_retry_failed`: the same as the command, from the UI."""

import dagster as dg
import pytest

from dataflow_assets.jobs.failed_rows import retry_failed_job
from dataflow_assets.task_state import TaskStore, new_pause
from dataflow_assets_tests.failed.project import ANSWERED, LOWER, Queue, heal


def run_job(queue: Queue, raise_on_error: bool = True, **config: object) -> dg.ExecuteInProcessResult:
    job = retry_failed_job(queue.work)
    return job.execute_in_process(config, instance=queue.instance, raise_on_error=raise_on_error)


def test_the_job_retries_and_redoes_the_dependents(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5, 6])
    heal(ill.folder)
    assert run_job(ill).success
    assert ill.calls() == {5: 1, 6: 1}
    assert ill.generations(2) == [1, 2, 1]
    assert ill.events("lower")[-1] == "in_b00001"


@pytest.mark.parametrize("config", [{"step": "lower"}, {"error_class": ["KeyError"]}, {"max_attempts": 1}])
def test_the_job_takes_step_class_and_attempts(queue: Queue, config: dict) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5])
    assert run_job(ill, **config).success
    assert ill.calls() == {}


def test_while_the_pipeline_is_paused_the_job_is_canceled(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, sick=[5])
    TaskStore(ill.instance, ill.work.layout.folder).ask_pause(new_pause(ill.work.pipeline, "dinner"))
    result = run_job(ill, raise_on_error=False)
    run = ill.instance.get_run_by_id(result.run_id)
    assert run is not None and run.status in (dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.CANCELING)
    assert ill.calls() == {}
