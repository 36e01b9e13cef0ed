import math

import pytest

from dataflow_assets.batch import schema_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

ROWS = table(
    title=["T", None, "中"], body=["B", "b", ""], n=[1, 2, None], ok=[True, None, False], j=[[1], "x", None]
)


@pytest.mark.parametrize(
    ("params", "texts"),
    [
        ({"columns": ["title", "body"]}, ["T\nB", "b", "中\n"]),
        ({"columns": ["body", "n", "ok"], "separator": " | "}, ["B | 1 | true", "b | 2", " | false"]),
        ({"columns": ["j", "body"], "separator": ""}, ["[1]B", "xb", ""]),
        ({"template": "# {title}\n{body}"}, ["# T\nB", "# \nb", "# 中\n"]),
        ({"template": "{{{n}}} {n}"}, ["{1} 1", "{2} 2", "{} "]),
    ],
)
def test_columns_become_one_text(params: dict, texts: list[str]):
    kept = applied("merge_columns", ROWS, {"to": "text", "on_null": "skip", **params}).kept
    assert kept["text"].to_pylist() == texts
    assert kept.drop_columns(["text"]) == ROWS


def test_a_null_fails_its_row_or_drops_it():
    failed = applied("merge_columns", ROWS, {"to": "text", "columns": ["title", "n"]})
    assert (ids(failed.kept), ids(failed.failed)) == (["r0"], ["r1", "r2"])
    dropped = applied("merge_columns", ROWS, {"to": "text", "columns": ["title", "n"], "on_null": "reject"})
    assert (ids(dropped.kept), ids(dropped.rejected)) == (["r0"], ["r1", "r2"])
    assert dropped.rejected is not None and "text" not in dropped.rejected.column_names


def test_a_merged_column_may_be_written_itself():
    kept = applied("merge_columns", ROWS, {"to": "body", "template": "{body}!"}).kept
    assert schema_of(kept) == schema_of(ROWS)
    assert kept["body"].to_pylist() == ["B!", "b!", "!"]


def test_a_lone_surrogate_fails_its_row():
    outcome = applied("merge_columns", table(a=["x", "\ud800"]), {"to": "text", "columns": ["a"]})
    assert (ids(outcome.kept), ids(outcome.failed)) == (["r0"], ["r1"])


def test_a_number_that_json_has_not_fails_its_row():
    outcome = applied("merge_columns", table(f=[1.5, math.nan, -math.inf]), {"to": "text", "columns": ["f"]})
    assert (ids(outcome.kept), ids(outcome.failed)) == (["r0"], ["r1", "r2"])
    assert outcome.failed is not None
    assert outcome.failed["error_message"][1].as_py() == (
        "wrong type: column 'f' holds -inf; JSON has no NaN or infinity"
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "exactly one of columns and template"),
        ({"columns": ["a"], "template": "{a}"}, "exactly one of columns and template"),
        ({"template": "no column"}, "names no column"),
        ({"template": "{a} }"}, "a brace at character 4"),
        ({"template": "{}{a}"}, "a brace at character 0"),
        ({"to": "row_id", "columns": ["a"]}, "cannot be called 'row_id'"),
    ],
)
def test_mistakes_are_refused_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("merge_columns", {"to": "text", **params})
