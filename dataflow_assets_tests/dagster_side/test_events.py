"""What Dagster is told of each batch: one event, with its numbers, rows and files."""

import pytest

from dataflow_assets.io.events import DEFER_EVENTS_TAG
from dataflow_assets_tests.dagster_side.small_pipelines import NAMES, SmallProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
HOSTILE = "<img src=x onerror=alert(1)> | `x` [a](javascript:b) \x1b[31m"
FAILING = """\
  - name: checked
    type: map_python
    params: {function: "dataflow_assets_tests.dagster_side.row_functions:refuse_bad"}
"""
REDACTING = "  - {name: redacted, type: redact_pii, params: {counts_column: found}}\n"
NUMBERS = {
    "rows_in", "dagster/row_count", "rejected", "failed", "seconds", "rows_per_second",
    "dagster/column_schema", "preview", "path",
}  # fmt: skip
STEP_NAMES = ["lower", "long-enough", "unique", "last"]


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One", "two", "Two", "x", "y", "three"])
    return project


def test_a_run_of_the_command_writes_one_event_for_each_batch_of_each_step(project):
    project.run()
    assert {name: project.event_count(name) for name in NAMES} == {
        "source": 1, "lower": 3, "long-enough": 3, "unique_state": 1, "unique": 3, "last": 3,
    }  # fmt: skip


def test_a_run_with_nothing_to_do_writes_no_event(project):
    project.run()
    before = {name: project.event_count(name) for name in NAMES}
    project.run()
    assert {name: project.event_count(name) for name in NAMES} == before


@pytest.mark.parametrize("name", STEP_NAMES)
def test_the_newest_event_of_each_batch_has_all_numbers_after_the_command(project, name):
    project.run()
    assert all(project.metadata(name, batch).keys() >= NUMBERS for batch in project.batches)


@pytest.mark.parametrize("name", STEP_NAMES)
def test_the_newest_event_of_each_batch_has_all_numbers_after_a_launch_from_the_ui(project, name):
    project.run_in_ui("source")
    project.run_in_ui(*NAMES[1:], keys=(project.batches[0], project.batches[-1]))
    assert all(project.metadata(name, batch).keys() >= NUMBERS for batch in project.batches)
    assert project.event_count(name) == 3


def test_a_launch_from_the_ui_over_done_batches_writes_their_events_again(project):
    project.run()
    project.run_in_ui("lower", keys=("a_b00001", "a_b00002"))
    assert project.event_count("lower") == 5
    assert project.metadata("lower", "a_b00001").keys() >= NUMBERS


def test_the_tag_that_keeps_dagster_from_hiding_our_events_is_not_stored_on_the_run(project):
    run = project.run_in_ui("source").dagster_run
    assert DEFER_EVENTS_TAG not in run.tags
    assert DEFER_EVENTS_TAG not in project.instance.get_run_by_id(run.run_id).tags


def test_an_event_says_what_was_rejected_and_why(project):
    project.run()
    metadata = project.metadata("long-enough", "a_b00001")
    assert (metadata["rows_in"], metadata["dagster/row_count"], metadata["rejected"]) == (2, 1, 1)
    assert metadata["rejected_by_reason"] == {"too_short": 1}
    assert metadata["rejected_path"].endswith("_rejected/a_b00001.jsonl")


def test_an_event_says_what_failed_and_where_it_is(tmp_path):
    project = SmallProject(tmp_path, steps=FAILING)
    project.write_rows("a", ["good", "bad"])
    project.run()
    metadata = project.metadata("checked", "a_b00000")
    assert (metadata["failed"], metadata["failed_by_reason"]) == (1, {"ValueError": 1})
    assert metadata["failed_path"].endswith("_failed/a_b00000.jsonl")


def test_the_numbers_of_an_operator_are_in_the_event(tmp_path):
    project = SmallProject(tmp_path, steps=REDACTING)
    project.write_rows("a", ["a@b.com 8.8.8.8", "c@d.com", "none"])
    project.run()
    assert project.metadata("redacted", "a_b00000")["counts"] == {"email": 2, "ipv4": 1}
    assert "counts" not in project.metadata("redacted", "a_b00001")


def test_the_columns_are_in_the_column_view_of_dagster(project):
    project.run()
    columns = project.metadata("last", "a_b00000")["dagster/column_schema"].columns
    assert [(column.name, column.type) for column in columns] == [("row_id", "string"), ("text", "string")]


def test_the_preview_has_the_first_five_rows_only(tmp_path):
    project = SmallProject(tmp_path, batch_rows=9)
    project.write_rows("a", [f"row {n}" for n in range(9)])
    project.run()
    assert project.metadata("lower", "a_b00000")["preview"].count("row ") == 5


def test_markup_and_escapes_of_the_data_are_text_in_the_preview(project):
    project.write_rows("a", [HOSTILE])
    project.run()
    preview = project.metadata("lower", "a_b00000")["preview"]
    assert "<img" not in preview
    assert "\x1b" not in preview
    assert "](javascript" not in preview


def test_the_source_says_how_many_rows_and_batches_it_has(project):
    project.run()
    metadata = project.metadata("source")
    assert (metadata["dagster/row_count"], metadata["batches"], metadata["new_batches"]) == (6, 3, 3)


def test_the_state_of_a_dataset_step_counts_each_batch_once(project):
    project.run()
    assert project.metadata("unique_state")["batches"] == 3
