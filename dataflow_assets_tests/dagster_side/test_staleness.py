"""Dagster calls fresh what is up to date and stale what is not, batch by batch."""

import shutil

import pytest

from dataflow_assets_tests.dagster_side.small_pipelines import NAMES, STEPS, SmallProject, another_home

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
TEXTS = ["One", "two", "Two", "x", "y", "three"]
DIAMOND = """\
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: left, type: rename_columns, params: {columns: {text: l}}, depends_on: [lower]}
  - {name: right, type: rename_columns, params: {columns: {text: r}}, depends_on: [lower]}
  - {name: both, type: lowercase, params: {column: l}, depends_on: [left, right]}
"""
AGAIN = STEPS.replace("lower,", "again,").partition("\n")[0] + "\n"
FIRST_UNIQUE = "  - {name: unique, type: drop_duplicates, params: {columns: [text]}}\n"


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", TEXTS)
    project.run()
    return project


def test_after_a_run_of_the_command_everything_is_fresh(project):
    assert project.stale() == {}


@pytest.mark.parametrize("steps", [DIAMOND, FIRST_UNIQUE], ids=["join", "dataset step first"])
def test_other_graphs_are_fresh_too(tmp_path, steps):
    project = SmallProject(tmp_path, steps=steps)
    project.write_rows("a", TEXTS)
    project.run()
    assert project.stale() == {}


def test_after_a_launch_from_the_ui_everything_is_fresh(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", TEXTS)
    project.run_in_ui("source")
    project.run_in_ui(*NAMES[1:], keys=("a_b00000", "a_b00002"))
    assert project.stale() == {}


def test_done_batches_that_are_launched_again_make_nothing_stale(project):
    project.run_in_ui("source")
    project.run_in_ui("lower", "unique_state", keys=("a_b00000", "a_b00001"))
    assert project.stale() == {}


def test_a_changed_parameter_makes_the_step_stale(project):
    project.set_steps(STEPS.replace("min_chars: 2", "min_chars: 4"))
    assert project.stale() == {f"long-enough/a_b0000{n}": "STALE: has a new code version" for n in range(3)}


def test_after_a_changed_parameter_and_a_run_everything_is_fresh(project):
    project.set_steps(STEPS.replace("min_chars: 2", "min_chars: 4"))
    project.run()
    assert project.stale() == {}


def test_a_step_that_ran_alone_makes_the_changed_batches_of_the_next_step_stale(project):
    project.set_steps(STEPS.replace("min_chars: 2", "min_chars: 4"))
    project.run(["long-enough"])
    stale = set(project.stale())
    assert stale >= {"unique_state", "unique/a_b00000", "unique/a_b00001"}
    assert not any(name.endswith("a_b00002") for name in stale)


def test_a_changed_row_makes_its_batch_stale_and_no_other_once_the_source_was_read(project):
    project.write_rows("a", [*TEXTS[:5], "THREE!"])
    project.run_in_ui("source")
    stale = project.stale()
    assert stale["lower/a_b00002"] == "STALE: has a new dependency data version"
    assert all(name.endswith("a_b00002") for name in stale)


def test_a_row_that_is_changed_back_is_fresh_without_being_done_again(project):
    project.write_rows("a", [*TEXTS[:5], "THREE!"])
    project.run_in_ui("source")
    project.write_rows("a", TEXTS)
    project.run()
    assert project.stale() == {}
    assert project.metadata("lower", "a_b00002")["generation"] == 1


def test_after_a_run_of_selected_steps_the_changed_batch_of_another_is_stale(project):
    project.write_rows("a", [*TEXTS[:5], "THREE!"])
    project.run(["last"])
    assert "lower/a_b00002" in project.stale()


def test_after_a_changed_row_and_a_run_everything_is_fresh(project):
    project.write_rows("a", [*TEXTS[:5], "THREE!"])
    project.run()
    assert project.stale() == {}


def test_an_added_file_makes_nothing_stale_but_adds_missing_batches(project):
    project.write_rows("b", ["more"])
    project.run_in_ui("source")
    stale = project.stale()
    assert {name for name, why in stale.items() if why == "MISSING"} == {
        f"{name}/b_b00000" for name in ("lower", "long-enough", "unique", "last")
    }
    assert not any(why.startswith("STALE") for why in stale.values())


def test_after_an_added_file_and_a_run_everything_is_fresh_and_old_batches_have_one_event(project):
    project.write_rows("b", ["two"])
    project.run()
    assert project.stale() == {}
    assert project.event_count("unique") == 4


def test_another_batch_size_makes_the_source_stale(project):
    project.changes["batch_rows"] = 3
    project.set_steps(STEPS)
    assert project.stale() == {"source": "STALE: has a new code version"}


def test_a_fresh_dagster_home_learns_that_all_is_done_and_fresh(project):
    project.instance = another_home(project)
    project.run()
    assert project.stale() == {}
    assert project.metadata("unique_state")["batches"] == 3


def test_a_copied_root_is_known_and_fresh_in_another_home(project, tmp_path):
    shutil.copytree(project.folder, tmp_path.parent / "copy")
    copy = SmallProject(tmp_path.parent / "copy")
    copy.run()
    assert copy.stale() == {}
    assert copy.materialized("last") == copy.committed("last") == set(project.batches)


def test_reading_the_source_in_the_ui_of_another_home_reports_what_is_there(project):
    project.instance = another_home(project)
    project.run_in_ui("source")
    assert project.stale() == {}
    assert project.materialized("last") == project.committed("last")


@pytest.mark.parametrize("name", ["lower", "long-enough", "unique", "last"])
def test_after_a_step_was_renamed_and_a_run_everything_is_fresh_and_nothing_was_made(project, name):
    made = project.committed_at()
    project.set_steps(STEPS.replace(f"name: {name},", "name: other,"))
    project.run()
    assert project.stale() == {}
    assert project.committed_at() == made


def test_a_renamed_step_is_told_once(project):
    project.set_steps(STEPS.replace("lower,", "other,"))
    project.run()
    before = {name: project.event_count(name) for name in NAMES}
    project.run()
    assert {name: project.event_count(name) for name in NAMES} == before


def test_a_step_that_got_another_parent_is_stale_where_that_has_other_rows(project):
    project.set_steps(STEPS.replace("min_chars: 2}}", "min_chars: 2}, depends_on: [source]}"))
    project.run(["lower"])
    stale = {name for name in project.stale() if name.startswith("long-enough/")}
    assert stale == {"long-enough/a_b00000", "long-enough/a_b00001"}


@pytest.mark.parametrize("name", ["lower", "again", "long-enough", "unique"])
def test_after_a_step_was_taken_out_and_a_run_everything_is_fresh(tmp_path, name):
    steps = AGAIN + STEPS
    project = SmallProject(tmp_path, steps=steps)
    project.write_rows("a", TEXTS)
    project.run()
    kept = [line for line in steps.splitlines(keepends=True) if f"name: {name}," not in line]
    project.set_steps("".join(kept))
    project.run()
    assert project.stale() == {}
