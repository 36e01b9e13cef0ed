"""Jobs that change nothing in a pipeline, run in this process."""

import pytest

from dataflow_assets.jobs.looking import export_job, report_job
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
