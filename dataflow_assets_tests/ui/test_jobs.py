"""Jobs that change nothing in a pipeline, run in this process."""

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.jobs.looking import export_job, report_job, status_job, trace_job
from dataflow_assets.jobs.running import run_job
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def project(tmp_path, monkeypatch):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One", "two", "Two", "x"])
    project.run()
    monkeypatch.chdir(tmp_path)
    return project


def test_the_report_and_the_card_are_written(project):
    assert report_job(project.work).execute_in_process({"card": "card.md"}, instance=project.instance).success
    assert "small" in (project.folder / "exports" / "small.html").read_text()
    assert (project.folder / "card.md").is_file()


def test_an_export_has_a_place_of_its_own_where_none_is_given(project):
    assert export_job(project.work).execute_in_process({"step": "lower"}, instance=project.instance).success
    lines = (project.folder / "exports" / "small_lower.jsonl").read_text().splitlines()
    assert lines == ['{"text":"one"}', '{"text":"two"}', '{"text":"two"}', '{"text":"x"}']


def shown(result, name: str) -> str:
    (output,) = [event for event in result.all_node_events if event.event_type_value == "STEP_OUTPUT"]
    return output.event_specific_data.metadata[name].value


def test_the_status_is_shown(project):
    result = status_job(project.work).execute_in_process({}, instance=project.instance)
    assert "| 1 | lower | 2 of 2 | 4 | 4 | 0 | 0 |" in shown(result, "steps")


def test_the_life_of_a_row_is_shown(project):
    project.write_rows("b", ["<b>|Hostile|</b> `x`"])
    project.run()
    result = trace_job(project.work).execute_in_process({"row_id": "b:1"}, instance=project.instance)
    life = shown(result, "life")
    assert "lower" in life and "changed" in life
    assert "<b>" not in life and "&lt;b&gt;" in life
    with pytest.raises(ConfigError, match="no row"):
        trace_job(project.work).execute_in_process({"row_id": "b:77"}, instance=project.instance)


def test_a_dry_run_of_a_pipeline_that_asks_no_model_costs_nothing(project):
    job = run_job(project.work.pipeline)
    result = job.execute_in_process({"dry_run": 2}, instance=project.instance)
    assert (shown(result, "cost"), shown(result, "sampled_rows")) == (0.0, 2)
