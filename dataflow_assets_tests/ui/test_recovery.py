"""A pipeline whose run died or failed is gone on with by the sensor, a bounded number of times."""

from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.storage.tags import RUN_KEY_TAG

from dataflow_assets.control import pipeline_lock
from dataflow_assets.home import HOME_FOLDER
from dataflow_assets.jobs.running import run_job
from dataflow_assets.recovery import MAX_RESUMES, Resumes, looked_after, resume_sensor
from dataflow_assets.task_state import LAUNCHED_BY, TaskState, TaskStore, new_pause
from dataflow_assets_tests.control.slow_project import waiting_run, work_of, write_slow
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One", "two", "Two", "x"])
    return project


def store(project):
    return TaskStore(project.instance, project.work.layout.folder)


def died(project, **state):
    """What a run leaves whose process was killed in its first step."""
    project.run()
    project.work.folder_of("last").remove("a_b00001")
    left = TaskState("small", "running", step="last", who="ada@host", when="2026-01-01T00:00:00Z")
    store(project).write(replace(left, **state))


def look(project, before=None):
    return looked_after(project.work, project.instance, before or Resumes())


def test_a_run_that_was_killed_is_gone_on_with(project):
    died(project)
    request, note = look(project)
    assert isinstance(request, dg.RunRequest)
    assert note.count == 1


def test_a_run_that_failed_is_gone_on_with(project):
    died(project, state="failed", cause="error", why="no space left")
    request, _ = look(project)
    assert isinstance(request, dg.RunRequest)


def test_the_same_end_is_answered_once(project):
    died(project)
    _, note = look(project)
    reason, again = look(project, note)
    assert "has not begun" in reason
    assert again == note


def test_after_three_times_a_person_is_asked(project):
    note = Resumes()
    for number in range(MAX_RESUMES):
        died(project, when=f"2026-01-01T00:00:0{number}Z")
        request, note = look(project, note)
        assert isinstance(request, dg.RunRequest)
    died(project, when="2026-01-02T00:00:00Z")
    reason, _ = look(project, note)
    assert "was gone on with 3 times and its run died each time" in reason


def test_once_it_is_done_it_counts_from_the_beginning(project):
    project.run()
    reason, note = look(project, Resumes(3, "some end"))
    assert (reason, note) == ("small is done", Resumes())


def test_while_it_is_paused_or_run_nothing_is_asked_for(project):
    died(project)
    store(project).ask_pause(new_pause(project.work.pipeline, "dinner"))
    assert look(project)[0] == "small is paused: dinner"
    store(project).clear_pause()
    with pipeline_lock(project.work.layout.folder):
        assert look(project)[0] == "small is being run"


def test_a_run_that_a_person_stopped_is_left_alone(project):
    died(project, state="partial", cause="signal", who="SIGINT")
    assert "ended by SIGINT" in look(project)[0]


def test_where_nothing_is_missing_nothing_is_asked_for(project):
    project.run()
    store(project).write(TaskState("small", "failed", cause="error", why="boom", when="t"))
    assert look(project)[0] == "small has no batch to make"


def test_a_pipeline_that_was_never_run_is_left_alone(project):
    assert look(project)[0] == "small was never run"


def test_the_run_of_the_dead_process_is_no_longer_started(project):
    run = dg.DagsterRun("__ephemeral_asset_job__", status=dg.DagsterRunStatus.STARTED)
    project.instance.add_run(run)
    died(project, run_id=run.run_id)
    look(project)
    assert project.instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.CANCELED


def test_the_run_of_the_job_that_began_it_is_ended_too(project):
    job = dg.DagsterRun("small_run", status=dg.DagsterRunStatus.STARTED)
    inner = dg.DagsterRun(
        "__ephemeral_asset_job__", status=dg.DagsterRunStatus.STARTED, tags={LAUNCHED_BY: job.run_id}
    )
    for run in (job, inner):
        project.instance.add_run(run)
    died(project, run_id=inner.run_id)
    look(project)
    assert project.instance.get_run_by_id(job.run_id).status == dg.DagsterRunStatus.CANCELED


def test_a_job_says_which_of_its_runs_it_began(project):
    job = run_job(project.work.pipeline)
    result = job.execute_in_process(instance=project.instance)
    began = project.instance.get_runs(dg.RunsFilter(tags={LAUNCHED_BY: result.run_id}))
    assert [run.status for run in began] == [dg.DagsterRunStatus.SUCCESS]


def test_a_run_that_failed_before_it_began_is_asked_for_again(project):
    died(project)
    first, note = look(project)
    tags = {RUN_KEY_TAG: first.run_key}
    project.instance.add_run(dg.DagsterRun("small_run", status=dg.DagsterRunStatus.FAILURE, tags=tags))
    second, again = look(project, note)
    assert second.run_key != first.run_key
    assert again.count == 2


def test_the_real_sensor_is_off_and_asks_for_the_run_job_which_makes_what_is_missing(project):
    died(project)
    job = run_job(project.work.pipeline)
    sensor = resume_sensor(project.work, job)
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    definitions = dg.Definitions(jobs=[job], sensors=[sensor], executor=dg.in_process_executor)
    with dg.build_sensor_context(
        project.instance, repository_def=definitions.get_repository_def()
    ) as context:
        tick = sensor.evaluate_tick(context)
    assert len(tick.run_requests) == 1
    assert Resumes.of_cursor(tick.cursor).count == 1
    assert job.execute_in_process(instance=project.instance).success
    assert look(project, Resumes.of_cursor(tick.cursor)) == ("small is done", Resumes())


def test_a_command_that_is_killed_leaves_no_started_run_and_is_gone_on_with(tmp_path):
    file = write_slow(tmp_path)
    with waiting_run(tmp_path) as process:
        process.kill()
        process.wait()
    with dg.DagsterInstance.from_config(str(tmp_path / HOME_FOLDER)) as instance:
        assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.STARTED]
        request, _ = looked_after(work_of(file), instance, Resumes())
        assert isinstance(request, dg.RunRequest)
        assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.CANCELED]
