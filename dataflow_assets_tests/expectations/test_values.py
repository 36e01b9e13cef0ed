"""Each kind of value, against what can be counted by hand; batches make no difference."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dataflow_assets.checks import check_results
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline.schema import json_schema
from dataflow_assets.profiles.conversations import CONVERSATION_LABELS, CONVERSATION_MEASURES
from dataflow_assets.profiles.texts import TEXT_LABELS, TEXT_MEASURES
from dataflow_assets_tests.expectations.projects import (
    dropping_short_texts,
    fresh_work,
    judged,
    named,
    project_with,
    write,
)
from dataflow_assets_tests.walk import walk

WORDS = ("apple", "river", "stone", "cloud", "table")
ROWS = [
    {
        "text": f"{'many ' * (place % 10)}words about {WORDS[place % 5]} number {place}.",
        "answer": None if place % 8 == 0 else f"Answer {place % 4}",
        "kind": "question" if place % 5 else "order",
        "good": place % 4 != 0,
        "score": place % 100,
        "weight": None if place % 2 else place / 100,
        "messages": [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "That."}][
            : 1 if place % 10 == 0 else 2
        ],
    }
    for place in range(200)
]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("rows", 200),
        ("kept.share", 1),
        ("rejected.share", 0),
        ("rejected(too_short).share", 0),
        ("failed.share", 0),
        ("null(answer)", 25 / 200),
        ("null(weight)", 0.5),
        ("distinct(kind)", 2),
        ("distinct(good)", 2),
        ("distinct(text)", 200),
        ("duplicates(text)", 0),
        ("duplicates(kind)", 198 / 200),
        ("boilerplate(text)", 1 / 200),
        ("score.mean", 49.5),
        ("score.min", 0),
        ("score.max", 99),
        ("score.p50", 49),
        ("score.p95", 94),
        ("weight.max", 1.98),
        ("words.min", 5),
        ("text.words.p99", 14),
        ("messages.turns.mean", 1.9),
        ("turns.min", 1),
        ("share(score < 10)", 0.1),
        ("share(score = 3)", 0.01),
        ("share(words > 13)", 0.1),
        ("share(text.chars >= 1)", 1),
        ('share(kind = "order")', 0.2),
        ('share(kind = "nothing")', 0),
        ('share(good = "true")', 0.75),
        ('share(text.language = "zh")', 0),
        ('share(last_role = "user")', 0.1),
        ("label_conflicts(kind, good)", 1),
        ("label_conflicts(text, good)", 0),
        ("label_conflicts(kind, answer, good)", 0),
        ("psi(score, before)", 0),
        ("js(kind, before)", 0),
    ],
)
def test_a_value_is_what_can_be_counted(tmp_path, value, expected):
    found = [
        judged(tmp_path / str(batch_rows), ROWS, f"{value} >= -1", batch_rows=batch_rows)[0].value
        for batch_rows in (30, 200)
    ]
    assert found == [pytest.approx(expected, rel=1e-6)] * 2


@pytest.mark.parametrize(
    ("op", "passed"), [("<=", True), (">=", True), ("=", True), ("<", False), (">", False)]
)
def test_a_value_that_is_the_limit(tmp_path, op, passed):
    rules = [f"{value} {op} {limit}" for value, limit in (("score.p50", 49), ("null(answer)", 0.125))]
    assert [result.passed for result in judged(tmp_path, ROWS, *rules)] == [passed] * 2


@pytest.mark.parametrize(
    ("op", "passed"), [("<=", True), (">=", True), ("=", True), ("<", False), (">", False)]
)
def test_a_limit_that_no_32_bit_float_is(tmp_path, op, passed):
    rows = [{"price": price, "text": "one two 3"} for price in (0.3, 0.7) for _ in range(150)]
    values = ("price.p05", 0.3), ("price.p95", 0.7), ("digit_share.max", 1 / 9), ("digit_share.mean", 1 / 9)
    found = judged(tmp_path, rows, *(f"{value} {op} {limit}" for value, limit in values))
    assert [result.passed for result in found] == [passed] * 4


LARGE = [
    ("share(ts > 1700000300) <= 0.1", 0.4983, False),
    ("share(ts >= 1700000301) = 0", 0.4983, False),
    ("share(ts > 1700001000) > 0", 0, False),
    ("share(ts = 1700000300) <= 0.1", 0.0017, True),
    ("share(ms > 1700000000300) <= 0.1", 0.4983, False),
    ("share(fraction > 1700000300.4) <= 0.1", 0.5, False),
    ("ts.p95 <= 1700000300", 1700000569, False),
    ("ts.max <= 1700000598", 1700000599, False),
    ("ms.max <= 1700000000598", 1700000000599, False),
    ("ms.min >= 1700000000001", 1700000000000, False),
    ("ms.p05 = 1700000000028", 1700000000029, False),
    ("id.max = 9007199254740992.0", 9007199254740992, True),
]


@pytest.mark.parametrize("batch_rows", [50, 600])
def test_large_numbers_are_compared_as_they_are(tmp_path, batch_rows):
    rows = [
        {"ts": 1_700_000_000 + n, "ms": 1_700_000_000_000 + n, "fraction": 1_700_000_000.5 + n, "id": 2**53}
        for n in range(600)
    ]
    rules = named(rule for rule, *_ in LARGE)
    found = judged(tmp_path, rows, *rules, batch_rows=batch_rows)
    told = [(result.rule, round(result.value, 4), result.passed) for result in found]
    assert told == LARGE
    assert [example.value for example in found[5].examples][:1] == ["1700000599.5"]
    assert "found 1,700,000,000,599: 0.167% of 600 rows are > 1,700,000,000,598; e.g." in found[8].message


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("null(answr) = 0", "there is no column 'answr' (there are: text, answer, kind, good, score, weight"),
        ("null(answr) = 0", "did you mean 'answer'?"),
        ("tokns.p95 < 5", "'tokns' is no measure and no column (columns: text, answer"),
        ("tokns.p95 < 5", "did you mean 'tokens'"),
        ("kind.p95 < 5", "a statistic is not for 'kind', which is string and has no numbers"),
        ("messages.mean < 5", "name a measure of it, such as messages.turns"),
        ("messages.words.mean < 5", "is json and has no measure 'words' (there are: turns"),
        ("score.chars.mean < 5", "is int64 and has no measure 'chars' (there are: value)"),
        ('share(score = "3") < 1', "a text in quotes is not for 'score', which has numbers"),
        ("share(kind > 3) < 1", "a number is not for 'kind'"),
        ("psi(kind, before) < 1", "psi is not for 'kind'"),
        ("js(score, before) < 1", "js is not for 'score', which has numbers"),
        ("good.p95 < 5", "'good', which is bool and has no numbers; take share(good = \"true\") or js"),
        ("share(last_role > 3) < 1", "'last_role', which has labels; take share(last_role = \"…\") or js"),
        ('share(messages = "x") < 1', "'messages', which is json, whose values are not counted"),
        ("js(messages, before) < 1", "name a label of it, such as messages.last_role"),
        ("duplicates(score) < 1", "`checks` has max_duplicate_share for it"),
        ("near_duplicates(messages) < 1", "which is json; expected string"),
        ("label_conflicts(kind, gut) < 1", "there is no column 'gut'"),
        ("unfinished.mean < 1", "name one: text.unfinished or messages.unfinished"),
        ("row_id.chars.mean < 1", "there is no column 'row_id'"),
    ],
)
def test_a_rule_that_the_columns_do_not_fit_is_told_before_a_row_is_read(tmp_path, rule, told):
    project = project_with(tmp_path, ROWS, rule)
    with pytest.raises(ConfigError, match=r"small.yaml:\d+: step 1 'looked-at' \(map_python\)") as error:
        project.work.check_before_run()
    assert told in str(error.value)


def test_without_a_column_the_only_one_of_texts_is_meant(tmp_path):
    rows = [{"body": f"one more text {place}", "n": 1} for place in range(20)]
    assert judged(tmp_path, rows, "words.max <= 3")[0].value == 4


def test_of_more_columns_of_texts_one_is_to_be_named(tmp_path):
    project = project_with(tmp_path, [{"question": "what", "answer": "that"}], "tokens.p95 < 3")
    with pytest.raises(ConfigError, match=r"are question, answer; name one: question\.tokens"):
        project.work.check_before_run()


def test_a_column_comes_before_a_measure_of_its_name(tmp_path):
    rows = [{"text": "one two three", "words": 77, "language": "latin"} for _ in range(20)]
    rules = ("words.max < 5", 'share(language = "latin") > 2', 'share(text.language = "latin") > 2')
    assert [result.value for result in judged(tmp_path, rows, *rules)] == [77, 1, 0]


def test_short_texts_are_measured_where_a_rule_asks(tmp_path):
    rows = [{"text": "Yes"} for _ in range(50)] + [{"text": "a rather long text of many words"}] * 50
    (result,) = judged(tmp_path, rows, "share(words <= 1) <= 0.1", batch_rows=50)
    assert (result.value, result.passed) == (0.5, False)


def test_near_duplicates_differ_in_digits_case_and_marks(tmp_path):
    begin = "A text that is long enough to have its own beginning"
    rows = [{"text": f"{begin}, {place}!"} for place in range(60)]
    rows += [{"text": f"{place} is another text, and no other begins as it does"} for place in range(40)]
    (result,) = judged(tmp_path, rows, "near_duplicates(text) <= 0.1")
    assert (result.value, result.passed) == (0.59, False)


def test_rows_of_which_nothing_can_be_measured_break_a_statistic_and_a_share(tmp_path):
    rules = ("turns.min >= 0", "share(turns > 9) <= 1", "duplicates(messages) <= 1")
    found = judged(tmp_path, [{"messages": {"no": "conversation"}}] * 3, *rules)
    assert [(result.value, result.passed) for result in found[:2]] == [(None, False)] * 2
    assert found[2].passed is True
    assert found[0].message == "expected messages.turns.min >= 0, nothing to measure".replace("messages.", "")


def test_a_step_without_rows_passes_all_but_a_number_of_rows(tmp_path):
    rules = ("rows >= 1", "null(text) = 0", "words.p95 < 3", "share(words > 3) < 1", "kept.share >= 0.5")
    project = project_with(tmp_path, [{"text": "a"}] * 3, *rules)
    work = walk(dropping_short_texts(project, min_chars=9).pipeline)
    found = check_results(work, work.pipeline.step("looked-at"))
    assert [result.passed for result in found] == [False, True, True, True, False]


def test_before_the_first_batch_nothing_is_said(tmp_path):
    project = project_with(tmp_path, ROWS, "rows > 1")
    (result,) = check_results(project.work, project.work.pipeline.step("looked-at"))
    assert (result.passed, result.value, result.message) == (None, None, "")


def test_profiles_must_be_on_for_rules_that_look_at_them(tmp_path):
    project = project_with(tmp_path, ROWS, "null(text) = 0")
    file = tmp_path / "small.yaml"
    file.write_text(f"profile: false\n{file.read_text()}")
    with pytest.raises(ConfigError, match="`profile: false`; take that out"):
        fresh_work(project).check_before_run()
    file.write_text(file.read_text().replace("null(text) = 0", "rows > 0"))
    fresh_work(project).check_before_run()


def test_own_measures_go_by_their_name(tmp_path):
    project = project_with(tmp_path, ROWS, "shouting.max <= 0.5", "share(shouting > 0) <= 0.1")
    file = tmp_path / "small.yaml"
    own = "dataflow_assets_tests.expectations.row_functions:upper_share"
    file.write_text(f'profile: {{measures: {{shouting: "{own}"}}}}\n{file.read_text()}')
    work = walk(fresh_work(project).pipeline)
    found = check_results(work, work.pipeline.step("looked-at"))
    assert [result.value for result in found] == [0, 0]


def test_a_sampled_value_is_told_with_its_rows_and_bounds(tmp_path):
    rows = [{"text": f"word number {place} " * (1 + place % 5)} for place in range(4000)]
    rules = ("share(words > 9) <= 0.1", "words.p95 <= 9", "null(text) = 0", "distinct(text) >= 3990")
    project = project_with(tmp_path, rows, *rules, batch_rows=1000)
    file = tmp_path / "small.yaml"
    file.write_text(f"profile: {{share: 0.1}}\n{file.read_text()}")
    work = walk(fresh_work(project).pipeline)
    share, quantile, nulls, distinct = check_results(work, work.pipeline.step("looked-at"))
    assert share.value == pytest.approx(0.4, abs=0.08)
    told = r"found 0\.\d+: \d+ of \d{3} sampled rows \(of all rows 0\.\d+ to 0\.\d+ at 99\.9%\); e\.g\."
    assert re.search(told, share.message)
    told = r"found 15 \(of all rows 1\d to (…|15) at 99\.9%\): [\d.]+% of \d{3} sampled rows are > 9"
    assert re.search(told, quantile.message)
    assert (nulls.value, "sampled" in nulls.message) == (0, False)
    assert distinct.value == pytest.approx(4000, rel=0.03)


def test_the_page_names_every_measure():
    page = (Path(__file__).parents[2] / "docs" / "expectations.md").read_text(encoding="utf-8")
    for measures in (TEXT_MEASURES, TEXT_LABELS, CONVERSATION_MEASURES, CONVERSATION_LABELS):
        assert [name for name in measures if f"`{name}`" not in page] == []


def test_the_schema_of_pipelines_knows_expect_and_profile():
    validator = jsonschema.Draft202012Validator(json_schema())
    step = {"name": "one", "type": "lowercase", "params": {"column": "text"}}
    pipeline = {"name": "p", "source": {"path": "a"}, "profile": {"share": 0.5}}

    def fits(*rules: object, **more: object) -> bool:
        whole: Any = {**pipeline, "steps": [{**step, "expect": list(rules)}], **more}
        return validator.is_valid(whole)

    assert fits("rows > 1", {"that": "rows > 1", "severity": "error", "name": "enough"})
    assert fits(profile=False)
    assert not fits({"severity": "error"}) and not fits(5) and not fits({"that": "rows > 1", "each": "batch"})
    assert not fits({"that": "rows > 1", "severity": "fatal"}) and not fits(profile={"rate": 1})


def test_rows_that_break_a_rule_are_shown_for_each_kind_of_value(tmp_path):
    rows = [
        {
            "text": f"Read the page of number {place} twice."
            if place % 3
            else "Subscribe to our news.\nNow.",
            "label": "ab"[place % 2],
            "n": place,
            "answer": None if place == 7 else "x",
        }
        for place in range(120)
    ]
    rules = {
        "null(answer) = 0": ("a:8", "", "Read the page of number 7"),
        "duplicates(text) <= 0": ("a:1", "", "Subscribe to our news."),
        "near_duplicates(text) <= 0": ("a:1", "", "Subscribe to our news."),
        "boilerplate(text) <= 0.1": ("a:1", "", "subscribe to our news"),
        "label_conflicts(text, label) <= 0": ("a:1", "a", "Subscribe to our news."),
        "share(n >= 100) <= 0": ("a:120", "119", "Read"),
        "share(n >= 100) >= 1": ("a:1", "0", "Subscribe"),
        "n.p05 >= 50": ("a:1", "0", "Subscribe"),
        'share(label = "a") <= 0.1': ("a:1", "a", "Subscribe"),
        'share(label = "a") >= 0.9': ("a:2", "b", "Read"),
        "null(answer) >= 0.5": ("a:1", "x", "Subscribe"),
        "null(answer) = 1": ("a:1", "x", "Subscribe"),
        'share(label = "a") = 0': ("a:1", "a", "Subscribe"),
        'share(label = "a") = 1': ("a:2", "b", "Read"),
        'share(language = "en") = 0': ("a:1", "en", "Subscribe"),
        'share(language = "en") = 0.2': ("a:1", "en", "Subscribe"),
        "share(n >= 100) = 0": ("a:120", "119", "Read"),
        "share(n >= 100) = 1": ("a:1", "0", "Subscribe"),
        "share(n < 100) = 0.1": ("a:1", "0", "Subscribe"),
        "n.p05 = 50": ("a:1", "0", "Subscribe"),
        "n.p95 = 50": ("a:120", "119", "Read"),
    }
    found = judged(tmp_path, rows, *named(rules))
    for result, (row_id, value, text) in zip(found, rules.values(), strict=True):
        assert result.examples, result
        first = result.examples[0]
        shown = 1 if first.row_id == "a:8" else 3
        assert (result.passed, len(result.examples)) == (False, shown), result.rule
        assert (first.row_id, first.value, first.text.startswith(text)) == (row_id, value, True), result.rule


def test_rejected_and_failed_rows_are_shown(tmp_path):
    rules = [
        f"{value} <= 0.1" for value in ("rejected(too_short).share", "rejected.share", "rejected(x).share")
    ]
    rows = [{"text": "no"}, {"text": "long enough"}] * 3
    project = project_with(tmp_path, rows, "kept.share >= 0.9", *rules)
    work = walk(dropping_short_texts(project, min_chars=5).pipeline)
    found = check_results(work, work.pipeline.step("looked-at"))
    assert [result.value for result in found] == [0.5, 0.5, 0.5, 0]
    assert [(len(result.examples), result.passed) for result in found] == [(3, False)] * 3 + [(0, True)]
    assert (found[0].examples[0].row_id, found[0].examples[0].text) == ("a:1", "no")


def test_what_no_row_shows_has_no_examples(tmp_path):
    rules = ["kept.share = 0.1", "rejected.share = 0.9", "kept.share = 1", "rejected.share = 0"]
    rules += ["duplicates(text) = 1", "label_conflicts(text, kind) >= 0.5", "distinct(text) = 9"]
    rows = [{"text": "no", "kind": "a"}, {"text": "long enough", "kind": "a"}]
    project = project_with(tmp_path, rows, *named(rules))
    work = walk(dropping_short_texts(project, min_chars=5).pipeline)
    found = check_results(work, work.pipeline.step("looked-at"))
    assert [(result.passed, len(result.examples)) for result in found] == [
        (False, count) for count in (0, 0, 1, 1, 0, 0, 0)
    ]


def test_other_rejected_rows_are_judged_anew_where_the_kept_ones_are_the_same(tmp_path):
    project = project_with(tmp_path, [{"text": "long enough"}, {"text": "no"}], "rejected.share <= 0.6")
    work = walk(dropping_short_texts(project, min_chars=5).pipeline)
    assert check_results(work, work.pipeline.step("looked-at"), save=True)[0].value == 0.5
    write(project, [{"text": "long enough"}, {"text": "no"}, {"text": "no"}, {"text": "no"}])
    work = walk(work.pipeline)
    (result,) = check_results(work, work.pipeline.step("looked-at"))
    assert (result.value, result.passed, len(result.examples)) == (0.75, False, 3)


def test_steps_with_the_same_kept_rows_and_rule_are_judged_each_by_itself(tmp_path):
    rule = "rejected.share <= 0.4"
    project = project_with(tmp_path, [{"text": "long enough"}, {"text": "no"}], rule)
    file = tmp_path / "small.yaml"
    file.write_text(file.read_text().replace("{name: after,", f"{{name: after, expect: [{rule}],"))
    work = walk(dropping_short_texts(project, min_chars=5).pipeline)
    found = [check_results(work, step)[0].value for step in work.pipeline.ordered_steps]
    assert found == [0.5, 0]
