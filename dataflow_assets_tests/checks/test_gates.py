"""What a blocking check stops, now and later, and what goes on all the same."""

import dagster as dg
import pytest

from dataflow_assets.automation import watched
from dataflow_assets.errors import CheckFailed
from dataflow_assets.planning import plan_of
from dataflow_assets.status import status_of
from dataflow_assets_tests.checks.projects import (
    ASIDE,
    BLOCKS_EACH,
    BLOCKS_FAILED,
    evaluations,
    made,
    project_with,
    results,
    steps,
)

PASSES = "{max_failed_share: 0.2, blocking: true}"
ALL = {"a_b00000", "a_b00001", "a_b00002"}


@pytest.fixture
def blocked(tmp_path):
    """A project whose blocking check failed in its first run, with a step aside."""
    project = project_with(tmp_path, BLOCKS_FAILED, more=ASIDE)
    with pytest.raises(CheckFailed):
        project.run()
    return project


def test_the_message_names_step_check_value_limit_and_what_to_do(tmp_path):
    with pytest.raises(CheckFailed) as error:
        project_with(tmp_path, BLOCKS_FAILED).run()
    for part in ("'answers'", "'failed_share'", "0.166667 in 3 batches", "max_failed_share 0.1", "run again"):
        assert part in str(error.value)


def test_a_blocking_check_keeps_what_is_committed_and_stops_what_is_downstream(blocked):
    assert blocked.committed("answers") == ALL
    assert blocked.committed("last") == set()


def test_steps_that_do_not_depend_on_it_go_on(blocked):
    assert blocked.committed("aside") == ALL
    assert blocked.materialized("aside") == ALL


def test_the_next_run_ends_the_same_and_makes_nothing(blocked):
    with pytest.raises(CheckFailed):
        made(blocked)
    plan = plan_of(blocked.work, blocked.work.pipeline.ordered_steps, blocked.batches)
    assert (plan.names, plan.keys) == ([], [])
    assert status_of(blocked.work).state == "failed"


def test_a_raised_limit_lets_only_what_is_downstream_be_made(blocked):
    blocked.set_steps(steps(PASSES, more=ASIDE))
    assert made(blocked) == {"last": ["0", "1", "2"]}
    assert status_of(blocked.work).state == "done"
    assert evaluations(blocked, "failed_share") == [(False, None, 1 / 6), (True, None, 1 / 6)]


def test_a_warning_is_no_error_any_more(blocked):
    blocked.set_steps(steps("{max_failed_share: 0.1}", more=ASIDE))
    assert made(blocked) == {"last": ["0", "1", "2"]}
    assert results(blocked)[0].passed is False


def test_rows_that_were_put_right_let_it_pass(blocked):
    blocked.write_rows("a", ["one", "two", "good", "four", "five", "six"])
    assert made(blocked)["last"] == ["0", "1", "2"]
    assert results(blocked)[0].passed is True


def test_a_limit_that_is_lowered_later_fails_the_run_and_redoes_nothing(tmp_path):
    project = project_with(tmp_path, PASSES)
    project.run()
    project.set_steps(steps(BLOCKS_FAILED))
    with pytest.raises(CheckFailed):
        made(project)
    assert evaluations(project, "failed_share")[-1] == (False, None, 1 / 6)
    assert project.committed("last") == ALL


def test_selected_steps_downstream_are_held_and_others_are_not(blocked):
    with pytest.raises(CheckFailed):
        blocked.run(["last"])
    blocked.write_rows("b", ["seven"])
    blocked.run(["lower", "aside"])
    assert blocked.committed("last") == set()
    assert blocked.committed("aside") == {*ALL, "b_b00000"}


def test_the_sensor_says_why_nothing_is_run(blocked):
    blocked.run(["lower"])
    (answer,) = watched(blocked.work, blocked.instance)
    assert isinstance(answer, dg.SkipReason)
    assert "'failed_share' failed" in str(answer.skip_message)


def test_a_launch_of_the_step_downstream_is_refused(blocked):
    with pytest.raises(CheckFailed, match="nothing that depends on the step is made"):
        blocked.run_in_ui("last", keys=("a_b00000", "a_b00002"))
    assert blocked.committed("last") == set()


def test_a_launch_of_both_stops_behind_the_check_and_is_not_retried(tmp_path):
    project = project_with(tmp_path, BLOCKS_FAILED)
    project.run_in_ui("source")
    with pytest.raises(dg.DagsterError, match="failed_share"):
        project.run_in_ui("lower", "answers", "last", keys=("a_b00000", "a_b00002"))
    assert project.committed("last") == set()
    assert project.instance.get_runs(limit=1)[0].tags["dagster/max_retries"] == "0"


def test_a_step_with_a_blocking_check_hands_nothing_over(tmp_path):
    project = project_with(tmp_path, PASSES)
    project.run_in_ui("source")
    step = project.work.pipeline.step
    first = project.work.stream(step("lower"), ["a_b00000"], {"answers", "last"})
    assert [stream.name for stream in first.followers] == ["answers"]
    assert project.work.stream(step("answers"), ["a_b00000"], {"last"}).followers == []


def test_a_step_checked_batch_by_batch_does_not_run_ahead(tmp_path):
    project = project_with(tmp_path, BLOCKS_EACH)
    project.run_in_ui("source")
    stream = project.work.stream(project.work.pipeline.step("lower"), ["a_b00000"], {"answers", "last"})
    assert stream.followers == []


def test_a_batch_that_fails_is_the_last_that_is_committed(tmp_path):
    project = project_with(tmp_path, BLOCKS_EACH)
    with pytest.raises(CheckFailed, match=r"'failed_share_each_batch' failed: 0\.5 in batch 'a_b00001'"):
        project.run()
    assert project.committed("answers") == {"a_b00000", "a_b00001"}
    assert project.materialized("answers") == {"a_b00000", "a_b00001"}


def test_it_stops_at_the_same_batch_again_until_the_limit_is_raised(tmp_path):
    project = project_with(tmp_path, BLOCKS_EACH)
    for _ in range(2):
        with pytest.raises(CheckFailed):
            project.run()
    assert project.committed("answers") == {"a_b00000", "a_b00001"}
    project.set_steps(steps(BLOCKS_EACH.replace("0.4", "0.5")))
    assert made(project) == {"answers": ["2"], "last": ["0", "1", "2"]}


def test_each_batch_is_told_as_soon_as_it_is_committed(tmp_path):
    project = project_with(tmp_path, "{max_failed_share: 0.4, each: batch}")
    project.run()
    assert evaluations(project, "failed_share_each_batch") == [
        (True, "a_b00000", 0.0),
        (False, "a_b00001", 0.5),
        (True, "a_b00002", 0.0),
        (False, None, 0.5),
    ]


def test_fresh_makes_the_step_again_and_stops_at_it(blocked):
    blocked.work = type(blocked.work)(blocked.work.pipeline, reuse=False)
    with pytest.raises(CheckFailed):
        made(blocked)
    assert blocked.work.folder_of("answers").record("a_b00000").generation == 2
    assert blocked.committed("last") == set()


def test_another_dagster_is_told_how_the_checks_stand(tmp_path):
    project = project_with(tmp_path, "{max_failed_share: 0.1}", "{column: score, min_mean: 1}")
    project.run()
    project.instance = dg.DagsterInstance.ephemeral(tempdir=str(tmp_path))
    project.run()
    assert evaluations(project, "failed_share") == [(False, None, 1 / 6)]
    project.run()
    assert len(evaluations(project, "mean_score")) == 1


UNIQUE = "  - {name: unique, type: drop_duplicates, params: {columns: [text]}, checks: [CHECK]}\n"


def test_a_step_over_the_whole_data_set_is_held_and_holds(tmp_path):
    unique = UNIQUE.replace("CHECK", "{min_keep_rate: 0.9, blocking: true}")
    after = "  - {name: after, type: lowercase, params: {column: text}}\n"
    project = project_with(tmp_path, PASSES, texts=["one", "two", "one"], more=unique + after)
    with pytest.raises(CheckFailed, match="'keep_rate'"):
        project.run()
    assert (project.committed("unique"), project.committed("after")) == ({"a_b00000", "a_b00001"}, set())


def test_the_state_of_a_held_step_is_not_made(tmp_path):
    project = project_with(tmp_path, BLOCKS_FAILED, more=UNIQUE.replace("CHECK", ""))
    with pytest.raises(CheckFailed):
        project.run()
    assert project.event_count("unique_state") == 0
    with pytest.raises(CheckFailed):
        project.run_in_ui("unique_state")
