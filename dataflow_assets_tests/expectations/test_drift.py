"""Drift: from the step before, from the last complete run, from a profile in a file."""

import json
import math
from random import Random

import numpy as np
import pytest

from dataflow_assets.errors import CheckFailed, ConfigError
from dataflow_assets.expectations.drift import Bins, deciles, jensen_shannon, population_stability
from dataflow_assets.expectations.references import (
    LAST_RUNS_FILE,
    keep_last_run,
    last_run_reference,
    profile_file,
)
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.profiles import profile_of
from dataflow_assets.profiles.profile import merged
from dataflow_assets_tests.expectations.projects import (
    error,
    fresh_work,
    named,
    project_with,
    results,
    steps,
    write,
)

PSI, JS = "psi(words, last_run) <= 0.2", "js(kind, last_run) <= 0.05"


def rows(count: int, most_words: int = 9, orders: float = 0.2, seed: int = 1) -> list[dict]:
    """Texts of one to so many words, each an order or a question."""
    random = Random(seed)
    return [
        {
            "text": " ".join(["word"] * random.randint(1, most_words)) + f" {place}",
            "kind": "order" if random.random() < orders else "question",
            "number": place,
        }
        for place in range(count)
    ]


def test_psi_is_that_of_the_formula():
    before = Bins([1.0, 2.0], [10, 20, 30])
    now = np.array([1.0] * 30 + [2.0] * 20 + [3.0] * 10)
    one, other = np.array([30.5, 20.5, 10.5]) / 61.5, np.array([10.5, 20.5, 30.5]) / 61.5
    expected = sum((one - other) * np.log(one / other))
    assert population_stability(before, now).value == pytest.approx(expected)


def test_jensen_shannon_is_in_bits():
    assert jensen_shannon({"a": 3}, {"b": 5}).value == pytest.approx(1)
    assert jensen_shannon({"a": 3, "b": 1}, {"a": 30, "b": 10}).value == pytest.approx(0)
    expected = 0.5 * (math.log2(1 / 0.75)) + 0.5 * (0.5 * math.log2(0.5 / 0.75) + 0.5 * math.log2(0.5 / 0.25))
    assert jensen_shannon({"a": 1}, {"a": 1, "b": 1}).value == pytest.approx(expected)


@pytest.mark.parametrize("values", [[2] * 100, [1, 2] * 50, list(range(100)), [0] * 95 + [7] * 5, [3]])
def test_deciles_see_a_change_to_either_side(values):
    before = deciles(np.array(values, np.float32))
    same = population_stability(before, np.array(values, np.float32))
    lower = population_stability(before, np.array(values, np.float32) - 200)
    higher = population_stability(before, np.array(values, np.float32) + 200)
    assert same.value == pytest.approx(0)
    assert min(lower.value, higher.value) > 0.4


def test_samples_of_one_distribution_are_within_what_chance_gives():
    random = np.random.default_rng(7)
    beyond = 0
    for _ in range(300):
        found = population_stability(deciles(random.normal(size=300)), random.normal(size=150))
        labels = [
            dict(zip("abc", random.multinomial(200, [0.2, 0.3, 0.5]).tolist(), strict=True)) for _ in "12"
        ]
        beyond += found.value > found.by_chance
        divergence = jensen_shannon(*labels)
        beyond += divergence.value > divergence.by_chance
    assert beyond <= 6


def test_a_step_that_changes_its_rows_drifts_from_the_step_before(tmp_path):
    rules = ("psi(words, before) <= 0.1", "psi(number, before) <= 0.1", "js(kind, before) <= 0.1")
    project = project_with(tmp_path, rows(400), *rules)
    file = tmp_path / "small.yaml"
    changes = "dataflow_assets_tests.expectations.row_functions:doubled_from_200"
    file.write_text(file.read_text().replace("dataflow_assets_tests.walk:nothing_new", changes, 1))
    project.work = fresh_work(project)
    project.run()
    found = results(project)
    assert [result.passed for result in found.values()] == [False, True, True]
    assert "between 400 values and 400 of the reference (by chance up to" in found[rules[0]].message
    assert len(found[rules[0]].examples) == 3


def test_short_texts_drift_too(tmp_path):
    project = project_with(tmp_path, [{"text": "Why is it so?"}] * 300, "rows > 1")
    project.run()
    found = profile_file(profile_of(project.work, "looked-at"), "small", "looked-at")
    (tmp_path / "good.json").write_bytes(found)
    rules = [
        f"{value}, {then}) <= 0.1"
        for value in ("js(language", "psi(tokens")
        for then in ("before", '"good.json"')
    ]
    project.set_steps(steps(*named(rules)))
    file = tmp_path / "small.yaml"
    changes = "dataflow_assets_tests.expectations.row_functions:in_chinese"
    file.write_text(file.read_text().replace("dataflow_assets_tests.walk:nothing_new", changes, 1))
    project.work = fresh_work(project)
    project.run()
    assert [(result.rule, result.passed) for result in results(project).values()] == [
        (rule, False) for rule in rules
    ]


@pytest.mark.parametrize("batch_rows", [100, 5000])
def test_rare_values_that_are_counted_on_one_side_only_are_no_drift(tmp_path, batch_rows):
    def drawn(seed: int, new: float) -> list[dict]:
        random = Random(seed)
        kinds = ["new" if random.random() < new else f"k{random.randrange(100)}" for _ in range(5000)]
        return [{"text": f"text {place}", "kind": kind} for place, kind in enumerate(kinds)]

    project = project_with(tmp_path, drawn(1, 0.0), JS, batch_rows=batch_rows)
    project.run()
    write(project, drawn(2, 0.0))
    project.run()
    assert [(each.passed, each.value) for each in results(project).values()] == [(True, 0)]
    write(project, drawn(3, 0.4))
    project.run()
    (result,) = results(project).values()
    assert (result.passed, "'new' grew most" in result.message) == (False, True)


def test_a_column_that_was_not_there_before_is_told_before_a_row_is_read(tmp_path):
    project = project_with(tmp_path, rows(4), "psi(score, before) < 1")
    file = tmp_path / "small.yaml"
    new = 'dataflow_assets_tests.checks.row_functions:answered", columns: {answer: string, score: int64'
    file.write_text(file.read_text().replace('dataflow_assets_tests.walk:nothing_new"', new + "}", 1))
    told = r"the column 'score' is not there before the step \(there are: kind, number, text\)"
    with pytest.raises(ConfigError, match=told):
        fresh_work(project).check_before_run()


def test_without_an_earlier_run_there_is_nothing_to_compare(tmp_path):
    project = project_with(tmp_path, rows(300), PSI, JS)
    project.run()
    assert [(result.passed, result.value) for result in results(project).values()] == [(True, None)] * 2


def test_the_last_complete_run_is_what_rows_are_compared_with(tmp_path):
    project = project_with(tmp_path, rows(300), PSI, JS)
    project.run()
    write(project, rows(300, most_words=30, orders=0.8))
    project.run()
    assert [result.passed for result in results(project).values()] == [False, False]
    write(project, rows(300, most_words=30, orders=0.8, seed=2))
    project.run()
    assert [result.passed for result in results(project).values()] == [True, True]


def test_looking_again_compares_with_the_same_run(tmp_path):
    project = project_with(tmp_path, rows(300), PSI)
    project.run()
    write(project, rows(300, most_words=30))
    for _ in range(3):
        project.run()
        project.work = fresh_work(project)
        assert results(project)[PSI].passed is False


def test_a_run_that_does_not_end_is_not_kept(tmp_path):
    rule = error("psi(words, last_run) <= 0.2")
    project = project_with(tmp_path, rows(300), rule)
    project.run()
    file = project.work.folder_of("looked-at").path / "_state" / LAST_RUNS_FILE
    kept = file.read_bytes()
    write(project, rows(300, most_words=30))
    with pytest.raises(CheckFailed, match="psi"):
        project.run()
    assert file.read_bytes() == kept


def test_a_run_of_dagster_keeps_its_profile_too(tmp_path):
    project = project_with(tmp_path, rows(300), PSI)
    project.run_in_ui("source")
    project.run_in_ui("looked-at", "after", keys=("a_b00000", "a_b00002"))
    write(project, rows(300, most_words=30))
    project.run()
    assert results(project)[PSI].passed is False


def test_a_run_that_counted_with_another_tokenizer_is_no_reference(tmp_path):
    folder = StepFolder(tmp_path)
    keep_last_run(folder, "rows of then", "one tokenizer", merged([]))
    assert last_run_reference(folder, "rows of now", "one tokenizer") is not None
    assert last_run_reference(folder, "rows of now", "another") is None


def test_a_damaged_file_of_last_runs_is_none(tmp_path):
    project = project_with(tmp_path, rows(300), PSI)
    project.run()
    file = project.work.folder_of("looked-at").path / "_state" / LAST_RUNS_FILE
    for damage in ("[", "{}", '[{"contents": "x"}]', '[{"contents": "x", "profile": {"columns": 5}}]'):
        file.write_text(damage)
        assert results(project)[PSI].value is None


def test_a_reference_in_a_file(tmp_path):
    rules = ('psi(words, "good.json") <= 0.2', 'js(kind, "good.json") <= 0.05')
    project = project_with(tmp_path, rows(300), "rows > 1")
    project.run()
    found = profile_file(profile_of(project.work, "looked-at"), "small", "looked-at")
    (tmp_path / "good.json").write_bytes(found)
    project.set_steps(steps(*rules))
    assert [result.passed for result in results(project).values()] == [True, True]
    write(project, rows(300, most_words=30, orders=0.8))
    project.run()
    assert [result.passed for result in results(project).values()] == [False, False]


@pytest.mark.parametrize("batch_rows", [100, 300])
def test_large_numbers_drift_where_they_change_alone(tmp_path, batch_rows):
    def late(seconds: int) -> list[dict]:
        return [{"text": f"text {n}", "at": 1_700_000_000 + seconds + n % 3} for n in range(300)]

    rules = ("psi(at, last_run) <= 0.2", 'psi(at, "old.json") <= 0.2')
    project = project_with(tmp_path, late(0), *rules, batch_rows=batch_rows)
    edges = [float(np.float32(1_700_000_000))]  # as files had numbers before they were 64-bit floats
    old = {
        "rows": 300,
        "columns": {"at": {"numbers": {"value": {"edges": edges, "counts": [300, 0]}}, "labels": {}}},
    }
    (tmp_path / "old.json").write_text(json.dumps({"reference": old}))
    project.run()
    write(project, [*late(0), *late(0)])
    project.run()
    assert [result.passed for result in results(project).values()] == [True, True]
    write(project, late(1))
    project.run()
    assert [result.passed for result in results(project).values()] == [False, True]


def test_another_file_in_the_home_folder_is_another_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    project = project_with(tmp_path, rows(300), 'psi(words, "~/good.json") <= 0.2')
    project.run_in_ui("source")
    for most_words, passed in ((9, True), (30, False)):
        other = project_with(tmp_path / str(most_words), rows(300, most_words), "rows > 1")
        other.run()
        found = profile_file(profile_of(other.work, "looked-at"), "small", "looked-at")
        (tmp_path / "home" / "good.json").write_bytes(found)
        project.run()
        assert [result.passed for result in results(project).values()] == [passed]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is no JSON"),
        ("{}", "is no profile"),
        (
            '{"reference": {"columns": {"text": {"numbers": {"words": {"edges": [1], "counts": []}}}}}}',
            "no profile",
        ),
    ],
)
def test_a_reference_that_cannot_be_read_is_told_before_a_row_is(tmp_path, content, told):
    project = project_with(tmp_path, rows(3), 'psi(words, "good.json") <= 0.2')
    if content is not None:
        (tmp_path / "good.json").write_text(content)
    with pytest.raises(ConfigError, match="step 1 'looked-at'") as raised:
        project.work.check_before_run()
    assert told in str(raised.value)
    assert "dataflow-assets profile PIPELINE" in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ('psi(number, "good.json") <= 1', "has no column 'number' (it has: text)"),
        ('psi(tokens, "good.json") <= 1', "has no 'tokens' of the column 'text' (it has: words)"),
        ('js(language, "good.json") <= 1', "has no 'language' of the column 'text' (it has: words)"),
        ('js(text, "good.json") <= 1', "has no values of the column 'text' (it has: words)"),
    ],
)
def test_a_reference_that_lacks_what_is_compared_is_told_before_a_row_is_read(tmp_path, rule, told):
    bins = {"words": {"edges": [], "counts": [1]}}
    good = {"columns": {"text": {"numbers": bins, "labels": {"language": {}}}}}
    project = project_with(tmp_path, rows(3), rule)
    (tmp_path / "good.json").write_text(json.dumps({"reference": good}))
    with pytest.raises(ConfigError, match="step 1 'looked-at'") as raised:
        project.work.check_before_run()
    assert f"the reference good.json {told}; `dataflow-assets profile PIPELINE" in str(raised.value)


def test_a_reference_that_is_lost_later_breaks_the_rule_and_not_the_status(tmp_path):
    rule = 'psi(words, "good.json") <= 0.2'
    project = project_with(tmp_path, rows(300), rule)
    good = {"columns": {"text": {"numbers": {"words": {"edges": [], "counts": [1]}}, "labels": {}}}}
    (tmp_path / "good.json").write_text(json.dumps({"reference": good}))
    project.run()
    assert results(project)[rule].passed is True
    (tmp_path / "good.json").unlink()
    assert results(project)[rule].passed is False
