"""How checks are judged: from commit records and stored rows, to the same value each time."""

import json

import pyarrow as pa
import pytest

from dataflow_assets.checks import check_results
from dataflow_assets.io import measures
from dataflow_assets.io.measures import Measure
from dataflow_assets_tests.checks.projects import project_with, steps
from dataflow_assets_tests.walk import walk


def judged(folder, *checks, texts, **fields):
    """Each result as value and whether it passed."""
    project = project_with(folder, *checks, texts=texts, **fields)
    work = walk(project.work.pipeline)
    return [(found.value, found.passed) for found in check_results(work, work.pipeline.step("answers"))]


@pytest.mark.parametrize(
    ("check", "value", "passed"),
    [
        ("{max_failed_share: 0.2}", 0.2, True),
        ("{max_failed_share: 0.19}", 0.2, False),
        ("{min_keep_rate: 0.8}", 0.8, True),
        ("{min_keep_rate: 0.81}", 0.8, False),
        ("{column: answer, max_null_rate: 0.25}", 0.25, True),
        ("{column: answer, max_null_rate: 0.24}", 0.25, False),
        ("{column: score, min_mean: 3, max_mean: 4}", 10 / 3, True),
        ("{column: score, max_mean: 3}", 10 / 3, False),
        ("{column: answer, max_duplicate_share: 0.3}", 1 / 3, False),
        ("{column: answer, max_duplicate_share: 0, each: batch}", 0.0, True),
        ("{max_failed_share: 0.4, each: batch}", 0.5, False),
        ("{column: score, min_mean: 3, each: batch}", 3.0, True),
    ],
)
def test_a_limit_is_kept_or_not(tmp_path, check, value, passed):
    texts = ["one", "bad", "none", "four", "one"]
    assert judged(tmp_path, check, texts=texts) == [(pytest.approx(value), passed)]


def test_a_step_without_rows_passes_every_check(tmp_path):
    checks = ["{max_failed_share: 0}", "{min_keep_rate: 1}", "{column: score, min_mean: 5}"]
    checks += ["{column: answer, max_null_rate: 0}", "{column: answer, max_duplicate_share: 0}"]
    project = project_with(tmp_path, *checks, texts=["a"])
    project.set_steps(
        steps(*checks).replace("lowercase, params: {", "filter_length, params: {min_chars: 9, ")
    )
    work = walk(project.work.pipeline)
    found = check_results(work, work.pipeline.step("answers"))
    assert [(result.value, result.passed) for result in found] == [(None, True)] * 5


def test_rows_without_one_number_do_not_pass_a_mean(tmp_path):
    assert judged(tmp_path, "{column: score, min_mean: 0}", texts=["none"]) == [(None, False)]


def test_rows_without_a_value_have_no_duplicates(tmp_path):
    check = "{column: answer, max_duplicate_share: 0}"
    assert judged(tmp_path, check, texts=["none", "none"]) == [(None, True)]


def test_the_size_of_batches_does_not_matter_to_a_check_of_the_step(tmp_path):
    checks = ["{column: answer, max_duplicate_share: 0}", "{column: score, max_mean: 0}"]
    texts = ["one", "three", "one", "two", "two", "one"]
    found = [judged(tmp_path / str(rows), *checks, texts=texts, batch_rows=rows) for rows in (1, 2, 6)]
    assert found == [[(0.5, False), (pytest.approx(10 / 3), False)]] * 3


def test_a_check_of_each_batch_shows_the_worst(tmp_path):
    project = project_with(tmp_path, "{column: score, max_mean: 9, each: batch}", texts=["a", "bb", "ccc"])
    work = walk(project.work.pipeline)
    (result,) = check_results(work, work.pipeline.step("answers"))
    assert (result.batch, result.value, result.batches) == ("a_b00001", 3.0, 2)


def test_before_the_first_batch_nothing_is_said(tmp_path):
    project = project_with(tmp_path, "{max_failed_share: 0}")
    (result,) = check_results(project.work, project.work.pipeline.step("answers"))
    assert (result.passed, result.value, result.batches) == (None, None, 0)


def test_rows_are_measured_once_and_the_measures_stored_beside_them(tmp_path):
    project = project_with(tmp_path, "{column: score, max_mean: 9}", texts=["a", "bb", "ccc"])
    work = walk(project.work.pipeline)
    step = work.pipeline.step("answers")
    check_results(work, step, save=True)
    file = work.folder_of("answers").path / "_state" / "measures.json"
    assert sorted(json.loads(file.read_text()).values()) == [[3.0, 1], [3.0, 2]]
    file.write_text(json.dumps({name: [12.0, 2] for name in json.loads(file.read_text())}))
    measures._known.clear()
    assert check_results(work, step)[0].value == 6.0


def test_measures_that_are_damaged_are_made_again(tmp_path):
    project = project_with(tmp_path, "{column: score, max_mean: 9}", texts=["a", "bbb"])
    work = walk(project.work.pipeline)
    file = work.folder_of("answers").path / "_state" / "measures.json"
    file.parent.mkdir()
    file.write_text('{"sum')
    measures._known.clear()
    assert check_results(work, work.pipeline.step("answers"))[0].value == 2.0


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        ("nulls", pa.array([1.0, None, float("nan")]), Measure(2, 3)),
        ("sum", pa.array([1.5, None, float("nan"), float("inf"), 2.0]), Measure(3.5, 2)),
        ("sum", pa.array([2**62, 2**62, 2**62], pa.int64()), Measure(3 * 2.0**62, 3)),
        ("sum", pa.array(["1"], pa.large_string()), Measure(0, 0)),
        ("repeats", pa.array([0.0, -0.0, None, None]), Measure(1, 2)),
        ("repeats", pa.array(["a", "A", "a", "a", ""], pa.large_string()), Measure(2, 5)),
        ("repeats", pa.array([True, False, True]), Measure(1, 3)),
        ("repeats", pa.array([], pa.int64()), Measure(0, 0)),
    ],
)
def test_what_is_measured_of_a_column(kind, column, expected):
    assert measures._MEASURED[kind](pa.chunked_array([column])) == expected
