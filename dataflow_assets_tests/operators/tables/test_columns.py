import pytest

from dataflow_assets.batch import schema_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, table

ROWS = table(a=["x"], b=[1], c=[{"k": [1]}])


@pytest.mark.parametrize(
    ("name", "params", "columns"),
    [
        ("select_columns", {"keep": ["c", "a"]}, ["row_id", "c", "a"]),
        ("select_columns", {"keep": ["b", "row_id"]}, ["b", "row_id"]),
        ("select_columns", {"drop": ["a"]}, ["row_id", "b", "c"]),
        ("rename_columns", {"columns": {"a": "text"}}, ["row_id", "text", "b", "c"]),
        ("rename_columns", {"columns": {"a": "b", "b": "a"}}, ["row_id", "b", "a", "c"]),
    ],
)
def test_columns_come_as_promised(name: str, params: dict, columns: list[str]):
    kept = applied(name, ROWS, params).kept
    assert kept.column_names == columns
    assert schema_of(kept) == build_operator(name, params).output_schema(schema_of(ROWS))
    assert list(build_operator(name, params).output_schema(schema_of(ROWS))) == columns


def test_values_go_with_their_new_names():
    kept = applied("rename_columns", ROWS, {"columns": {"a": "b", "b": "a"}}).kept
    assert kept.to_pylist() == [{"row_id": "r0", "b": "x", "a": 1, "c": '{"k":[1]}'}]


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("select_columns", {}, "exactly one of keep and drop"),
        ("select_columns", {"keep": ["a"], "drop": ["b"]}, "exactly one of keep and drop"),
        ("select_columns", {"keep": []}, "at least 1 item"),
        ("select_columns", {"keep": ["a", "a"]}, "named twice: a"),
        ("select_columns", {"drop": ["row_id"]}, "cannot be dropped"),
        ("rename_columns", {"columns": {}}, "at least 1 item"),
        ("rename_columns", {"columns": {"row_id": "id"}}, "cannot be renamed"),
        ("rename_columns", {"columns": {"a": "reject_reason"}}, "cannot be called 'reject_reason'"),
        ("rename_columns", {"columns": {"a": ""}}, "cannot be called ''"),
        ("rename_columns", {"columns": {"a": "x", "b": "x"}}, "two columns would be called 'x'"),
    ],
)
def test_wrong_names_are_refused_at_load(name: str, params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator(name, params)


def test_a_name_that_is_taken_is_refused_before_any_work():
    with pytest.raises(ConfigError, match="already has a column 'b'"):
        build_operator("rename_columns", {"columns": {"a": "b"}}).output_schema(schema_of(ROWS))
