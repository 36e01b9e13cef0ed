"""What a rule that is an error stops: at once where it is sure, else at the end; now and later."""

import pytest

from dataflow_assets.checks import failed_gates
from dataflow_assets.errors import CheckFailed
from dataflow_assets.planning import plan_of
from dataflow_assets.status import status_of
from dataflow_assets_tests.checks.projects import evaluations, made
from dataflow_assets_tests.expectations.projects import (
    error,
    fresh_work,
    project_with,
    results,
    steps,
    write,
)

LONG = "share(words > 10) <= 0.05"


def rows(count: int, long_ones: range = range(0)) -> list[dict]:
    """Texts of four words; those of some are twelve words long."""
    text = "four words, number {}. "
    return [{"text": text.format(place) * (3 if place in long_ones else 1)} for place in range(count)]


@pytest.fixture
def planted(tmp_path):
    """20 batches, all texts of the third of which are too long."""
    return project_with(tmp_path, rows(2000, range(200, 300)), error(LONG, name="Long texts"))


def test_a_step_stops_soon_after_a_batch_that_breaks_a_rule_for_sure(planted):
    with pytest.raises(CheckFailed, match="stopped early after 3 of 20 batches"):
        planted.run()
    assert len(planted.committed("looked-at")) == 3
    assert planted.committed("after") == set()


def test_the_message_says_expected_actual_share_and_three_rows(planted):
    with pytest.raises(CheckFailed) as raised:
        planted.run()
    for part in (
        "step 'looked-at': rule 'Long_texts' is broken: Long texts: expected share(words > 10) <= 0.05",
        "found 0.3333: 100 of 300 rows",
        "e.g. a_b00002 a:201 (12) “four words, number 200. four",
        "a_b00002 a:202 (12)",
        "a_b00002 a:203 (12)",
        "nothing that depends on the step is made",
        "change the limit under `expect`",
    ):
        assert part in str(raised.value)


def test_the_next_run_ends_the_same_and_makes_nothing(planted):
    with pytest.raises(CheckFailed):
        planted.run()
    with pytest.raises(CheckFailed, match="stopped early after 3 of 20 batches"):
        made(planted)
    planted.work = fresh_work(planted)
    plan = plan_of(planted.work, planted.work.pipeline.ordered_steps, planted.batches)
    assert plan.names == []
    assert status_of(planted.work).state == "failed"


def test_a_changed_limit_lets_it_go_on_and_redoes_nothing(planted):
    with pytest.raises(CheckFailed):
        planted.run()
    planted.set_steps(steps(error("share(words > 10) <= 0.5", name="Long texts")))
    done = made(planted)
    assert (len(done["looked-at"]), len(done["after"])) == (17, 20)
    assert status_of(planted.work).state == "done"


def test_a_rule_that_is_kept_in_the_end_stops_nothing_where_it_is_not_sure(tmp_path):
    project = project_with(tmp_path, rows(2000, range(0, 100, 50)), error("share(words > 10) <= 0.006"))
    project.run()
    assert len(project.committed("after")) == 20
    assert results(project)["share(words > 10) <= 0.006"].passed is True


def test_a_rule_that_is_broken_at_the_end_holds_what_is_downstream(tmp_path):
    project = project_with(tmp_path, rows(300, range(0, 300, 20)), error("share(words > 10) <= 0.045"))
    with pytest.raises(CheckFailed, match=r"found 0\.05: 15 of 300 rows; e\.g\.") as raised:
        project.run()
    assert "stopped early" not in str(raised.value)
    assert (len(project.committed("looked-at")), project.committed("after")) == (3, set())


def test_a_warning_stops_nothing_and_is_told(tmp_path):
    project = project_with(tmp_path, rows(500, range(100, 300)), LONG)
    project.run()
    assert len(project.committed("after")) == 5
    assert results(project)[LONG].passed is False
    told = evaluations(project, "share_words_above_10_max", "looked-at")
    assert told == [(False, None, 0.5), (False, None, 0.4)]


def test_less_than_a_hundred_rows_are_never_sure(tmp_path):
    project = project_with(tmp_path, rows(80, range(80)), error(LONG), batch_rows=20)
    with pytest.raises(CheckFailed):
        project.run()
    assert len(project.committed("looked-at")) == 4


@pytest.mark.parametrize(
    ("rule", "batches"),
    [
        ("rows <= 250", 3),
        ("rows >= 5000", 6),
        ("words.p95 <= 10", 1),
        ("words.max <= 10", 1),
        ("words.min >= 5", 1),
        ("words.mean <= 2", 6),
        ("null(text) >= 0.5", 1),
        ("duplicates(text) >= 0.5", 1),
        ("distinct(text) <= 150", 2),
    ],
)
def test_each_kind_of_value_stops_as_soon_as_more_rows_cannot_mend_it(tmp_path, rule, batches):
    project = project_with(tmp_path, rows(600, range(0, 600, 2)), error(rule))
    with pytest.raises(CheckFailed):
        project.run()
    assert len(project.committed("looked-at")) == batches


def test_values_that_are_the_limit_stop_nothing(tmp_path):
    same = [{"text": "a text", "price": 0.3}] * 400
    project = project_with(tmp_path, same, error("price.p95 <= 0.3"))
    project.run()
    assert len(project.committed("after")) == 4


def test_a_launch_from_the_ui_stops_early_and_is_not_retried(planted):
    import dagster as dg

    planted.run_in_ui("source")
    with pytest.raises((dg.DagsterError, CheckFailed), match="stopped early after 3 of 20"):
        planted.run_in_ui("looked-at", "after", keys=("a_b00000", "a_b00019"))
    assert len(planted.committed("looked-at")) == 3
    assert planted.instance.get_runs(limit=1)[0].tags["dagster/max_retries"] == "0"
    assert evaluations(planted, "Long_texts", "looked-at")[0][0] is False


def test_rows_that_were_put_right_let_it_pass(planted):
    with pytest.raises(CheckFailed):
        planted.run()
    write(planted, rows(2000))
    planted.run()
    assert len(planted.committed("after")) == 20


def test_a_step_with_an_error_hands_nothing_over_and_does_not_run_ahead(planted):
    planted.run_in_ui("source")
    work = planted.work
    assert work.stream(work.pipeline.step("looked-at"), ["a_b00000"], {"after"}).followers == []


def test_what_was_judged_is_stored_and_not_judged_again(tmp_path, monkeypatch):
    project = project_with(tmp_path, rows(300), LONG, "rows > 1")
    project.run()
    project.work = fresh_work(project)
    from dataflow_assets.profiles import profiler

    monkeypatch.setattr(profiler, "read_profile", None)
    assert [result.passed for result in results(project).values()] == [True, True]


def test_judgements_that_are_damaged_are_made_again(tmp_path):
    project = project_with(tmp_path, rows(300), LONG)
    project.run()
    file = project.work.folder_of("looked-at").path / "_state" / "expectations.json"
    for damage in ('{"a"', "[]", '{"x": {}}', "null"):
        file.write_text(damage)
        assert results(project)[LONG].passed is True


def test_rules_are_no_part_of_what_batches_are_made_of(tmp_path):
    project = project_with(tmp_path, rows(300))
    project.run()
    project.set_steps(steps(error("rows > 1"), LONG))
    assert made(project) == {}
    assert [result.passed for result in results(project).values()] == [True, True]
    assert failed_gates(project.work, project.work.pipeline.step("looked-at"), ()) == []


def test_a_rule_on_a_column_that_committed_batches_lack_is_said_to_be_so(tmp_path):
    project = project_with(tmp_path, rows(300))
    project.run()
    file = tmp_path / "small.yaml"
    new = 'dataflow_assets_tests.checks.row_functions:answered", columns: {answer: string, score: int64}'
    changed = file.read_text().replace('dataflow_assets_tests.walk:nothing_new"', new, 1)
    file.write_text(changed.replace("expect: []", 'expect: ["score.mean >= 1"]'))
    project.work = fresh_work(project)
    assert "'score' is no measure and no column" in results(project)["score.mean >= 1"].message
    project.run()
    assert results(project)["score.mean >= 1"].passed is True


def test_a_run_that_goes_on_says_how_far_it_was_judged(tmp_path):
    project = project_with(tmp_path, rows(300), LONG)
    project.run_in_ui("source")
    project.run_in_ui("looked-at", keys=("a_b00000", "a_b00001"))
    assert "so far, after 2 of 3 batches" in results(project)[LONG].message


def test_a_few_batches_that_are_launched_alone_are_not_held_to_what_all_must_be(tmp_path):
    project = project_with(tmp_path, rows(300), error("rows >= 300"), error("words.mean <= 3"))
    project.run_in_ui("source")
    project.run_in_ui("looked-at", "after", keys=("a_b00000", "a_b00001"))
    assert len(project.committed("after")) == 2
    assert [(each.passed, each.blocking) for each in results(project).values()] == [(False, False)] * 2
    with pytest.raises(CheckFailed, match=r"expected words\.mean <= 3, found 4: 100% of 300 rows are > 3"):
        project.run()
