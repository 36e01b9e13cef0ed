"""The sensor asks for exactly the runs that the source needs; the schedule reads it every night."""

import shutil

import dagster as dg
import pytest

from dataflow_assets.assets import IO_MANAGER_KEY
from dataflow_assets.automation import daily_schedule, read_source_job, watch_sensor, watched
from dataflow_assets.control import pipeline_lock
from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets.planning import RANGE_END, RANGE_START
from dataflow_assets_tests.dagster_side.small_pipelines import NAMES, QUIET, STEPS, SmallProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One", "two", "Two", "x"])
    return project


def looked(project):
    (found,) = watched(project.work, project.instance)
    return found


def defined(project, **wired):
    resources = {IO_MANAGER_KEY: StepFilesIOManager(root=str(project.work.layout.root))}
    return dg.Definitions(
        assets=project.assets, resources=resources, executor=dg.in_process_executor, **wired
    )


def names_in(request):
    return [key.path[-1] for key in request.asset_selection]


def executed(project):
    """Runs what the sensor asks for, as the daemon does, until it skips; the requests and the reason."""
    requests = []
    while isinstance(found := looked(project), dg.RunRequest):
        project.run_in_ui(*names_in(found), tags=found.tags)
        requests.append(found)
        assert len(requests) < 5
    return requests, found.skip_message


def test_a_source_that_was_never_read_is_read_first(project):
    request = looked(project)
    assert names_in(request) == ["source"]
    assert request.run_key.startswith("source-")


def test_after_the_source_all_steps_are_asked_for_over_all_batches(project):
    project.run_in_ui("source")
    request = looked(project)
    assert names_in(request) == NAMES[1:]
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("a_b00000", "a_b00001")


def test_two_requests_bring_a_new_pipeline_up_to_date(project):
    requests, reason = executed(project)
    assert [names_in(request) for request in requests] == [["source"], NAMES[1:]]
    assert reason == "small is up to date"
    assert project.materialized("last") == project.committed("last") == set(project.batches)


def test_a_new_file_asks_for_its_batches_only_where_rows_are_independent(tmp_path):
    project = SmallProject(tmp_path, steps=STEPS.partition("  - {name: unique")[0])
    project.write_rows("a", ["One", "two", "Two", "x"])
    executed(project)
    project.write_rows("b", ["more"])
    requests, _ = executed(project)
    assert names_in(requests[0]) == ["source"]
    assert requests[1].tags[RANGE_START] == requests[1].tags[RANGE_END] == "b_b00000"


def test_a_new_file_leaves_the_events_of_other_batches_as_they_are(project):
    executed(project)
    project.write_rows("b", ["more"])
    executed(project)
    assert [project.event_count(name) for name in ("lower", "unique", "last")] == [3, 3, 3]
    assert project.stale() == {}


def test_a_changed_parameter_asks_for_the_steps_from_there_on(project):
    executed(project)
    project.set_steps(STEPS.replace("min_chars: 2", "min_chars: 4"))
    assert names_in(looked(project)) == ["long-enough", "unique_state", "unique", "last"]


def test_what_the_command_did_is_not_asked_for(project):
    project.run()
    assert looked(project).skip_message == "small is up to date"


def test_while_the_pipeline_runs_nothing_is_asked_for(project):
    with pipeline_lock(project.work.layout.folder):
        assert looked(project).skip_message == "small is being run"


def test_a_missing_source_is_a_reason_to_skip_that_names_it(project):
    (project.folder / "data" / "a.jsonl").unlink()
    (project.folder / "data").rmdir()
    assert "source data: there is no such file or folder" in looked(project).skip_message


def test_a_source_that_cannot_be_read_is_asked_for_once(project):
    (project.folder / "data" / "a.jsonl").write_text("no json\n")
    first = looked(project)
    with pytest.raises(Exception, match=r"a\.jsonl"):
        project.run_in_ui("source")
    assert looked(project).run_key == first.run_key


def test_a_mended_source_is_asked_for_again(project):
    (project.folder / "data" / "a.jsonl").write_text("no json\n")
    first = looked(project)
    project.write_rows("a", ["mended"])
    assert looked(project).run_key != first.run_key


def test_the_same_work_has_the_same_run_key_so_that_a_tick_does_not_double_it(project):
    project.run_in_ui("source")
    assert looked(project).run_key == looked(project).run_key


def test_a_source_that_changes_back_and_forth_is_asked_for_each_time(project):
    first = looked(project)
    executed(project)
    project.write_rows("a", ["other"])
    second = looked(project)
    executed(project)
    project.write_rows("a", ["One", "two", "Two", "x"])
    assert len({first.run_key, second.run_key, looked(project).run_key}) == 3


def test_a_file_that_went_away_and_came_back_is_read_again(project):
    project.write_rows("b", ["more"])
    requests, _ = executed(project)
    (project.folder / "data" / "b.jsonl").rename(project.folder / "b.jsonl")
    requests += executed(project)[0]
    (project.folder / "b.jsonl").rename(project.folder / "data" / "b.jsonl")
    requests += executed(project)[0]
    assert len({request.run_key for request in requests}) == len(requests) == 6


def test_a_source_is_read_again_where_its_settings_changed_or_its_folder_was_thrown_away(project):
    requests, _ = executed(project)
    project.changes["batch_rows"] = 1
    project.set_steps(STEPS)
    requests += executed(project)[0]
    shutil.rmtree(project.work.layout.root)
    requests += executed(project)[0]
    assert len({request.run_key for request in requests}) == len(requests) == 6


def test_steps_that_were_changed_after_a_run_that_made_nothing_are_asked_for_again(project):
    project.run_in_ui("source")
    first = looked(project)
    project.set_steps(STEPS.replace("min_chars: 2", "min_chars: 4"))
    assert names_in(looked(project)) == names_in(first)
    assert looked(project).run_key != first.run_key


def test_a_batch_that_vanished_twice_is_asked_for_twice(project):
    executed(project)
    keys = []
    for _ in range(2):
        project.work.folder_of("lower").remove("a_b00001")
        keys.append(looked(project).run_key)
        executed(project)
    assert keys[0] != keys[1]


def test_the_real_sensor_asks_for_the_same_run(project):
    project.run_in_ui("source")
    sensor = watch_sensor(project.work)
    repository = defined(project, sensors=[sensor]).get_repository_def()
    with dg.build_sensor_context(project.instance, repository_def=repository) as context:
        tick = sensor.evaluate_tick(context)
    assert [request.run_key for request in tick.run_requests] == [looked(project).run_key]


def test_sensor_and_schedule_are_off_until_someone_turns_them_on(project):
    job = read_source_job(project.work.pipeline)
    assert watch_sensor(project.work).default_status == dg.DefaultSensorStatus.STOPPED
    schedule = daily_schedule(project.work.pipeline, job)
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
    assert schedule.cron_schedule == "0 3 * * *"


def test_the_job_of_the_schedule_reads_the_source(project):
    job = defined(project, jobs=[read_source_job(project.work.pipeline)]).resolve_job_def("small_read_source")
    assert job.execute_in_process(instance=project.instance, run_config=QUIET).success
    assert project.batches == ["a_b00000", "a_b00001"]


def test_a_tick_with_nothing_new_reads_no_batch(project, monkeypatch):
    executed(project)
    monkeypatch.setattr("dataflow_assets.io.step_folder.decode", None)
    assert looked(project).skip_message == "small is up to date"
