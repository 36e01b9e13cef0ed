"""What a pipeline may say of checks, and what it is told of mistakes before a row is read."""

import pytest

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.pipeline.checks import CheckSpec
from dataflow_assets.pipeline.columns import check_columns
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.checks.projects import BLOCKS_FAILED, steps
from dataflow_assets_tests.pipeline_files import load, mistakes

HEAD = "name: p\nsource: {path: in.jsonl}\nsteps:\n"
COLUMNS: Schema = {"text": "string", "made_up": "json"}


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("{}", "a check has one rule: one of max_failed_share, min_keep_rate"),
        ("{max_failed_share: 0.1, min_keep_rate: 0.5}", "found max_failed_share, min_keep_rate"),
        ("{max_failed_share: 1.5}", "less than or equal to 1 (found 1.5)"),
        ("{max_failed_share: 0.1, column: answer}", "max_failed_share counts rows; leave out `column`"),
        ("{max_null_rate: 0.1}", "max_null_rate needs a `column`"),
        ("{column: score, min_mean: 9, max_mean: 5}", "min_mean is above max_mean (found 9 and 5)"),
        ("{max_failed_share: 0.1, each: row}", "'step' or 'batch' (found 'row')"),
        ("{max_faild_share: 0.1}", "there is no field 'checks.0.max_faild_share'"),
        ("{max_failed_share: 0.1}, {max_failed_share: 0.2}", "two checks are called 'failed_share'"),
    ],
)
def test_a_mistake_is_told_with_the_step(tmp_path, check, told):
    (mistake,) = mistakes(tmp_path, HEAD + steps(check))
    assert told in mistake
    assert "step 2 'answers' (map_python)" in mistake


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (
            "{column: answr, max_null_rate: 0}",
            "does not have (there are: text, made_up, answer, score); did you",
        ),
        ("{column: answer, min_mean: 0}", "'mean_answer' needs numbers, and the column 'answer' is string"),
        ("{column: made_up, max_mean: 0}", "is json; expected int64 or float64"),
    ],
)
def test_columns_are_checked_along_the_graph(tmp_path, check, told):
    with pytest.raises(ConfigError, match="step 2 'answers'") as error:
        check_columns(load(tmp_path, HEAD + steps(check)), COLUMNS)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"max_failed_share": 0}, "failed_share"),
        ({"min_keep_rate": 0, "each": "batch"}, "keep_rate_each_batch"),
        ({"max_mean": 5, "column": "score"}, "mean_score"),
        ({"max_null_rate": 0, "column": "a-b"}, "null_rate_a_b_f5e2d74c"),
        ({"max_null_rate": 0, "column": "a", "name": "own"}, "own"),
    ],
)
def test_names_are_made_of_the_rule_and_the_column(fields, name):
    assert CheckSpec(**fields).check_name == name


def test_columns_that_differ_in_what_names_cannot_hold_have_names_of_their_own():
    names = {
        CheckSpec(max_null_rate=0, column=column).check_name for column in ("问题", "答案", "a b", "a_b")
    }
    assert len(names) == 4


def test_a_warning_and_a_blocking_check_of_one_rule_go_with_a_name(tmp_path):
    both = steps("{max_failed_share: 0.1}", "{max_failed_share: 0.3, blocking: true, name: too_many_failed}")
    checks = load(tmp_path, HEAD + both).step("answers").checks
    assert [check.check_name for check in checks] == ["failed_share", "too_many_failed"]


def test_checks_are_no_part_of_fingerprints(tmp_path):
    works = [PipelineWork(load(tmp_path, HEAD + steps(*checks))) for checks in ((), (BLOCKS_FAILED,))]
    one, other = (operator_fingerprint(work.pipeline.operator("answers")) for work in works)
    assert one == other
