import pytest

from dataflow_assets.batch import schema_of, values_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

MODULE = "dataflow_assets_tests.operators.python_functions"


def path(name: str) -> dict[str, object]:
    return {"function": f"{MODULE}:{name}"}


@pytest.mark.parametrize("function", ["shout", "scorer"])
def test_a_function_adds_a_declared_column(function: str):
    kept = applied(
        "map_python", table(text=["ab", ""]), {**path(function), "columns": {"chars": "int64"}}
    ).kept
    assert kept["chars"].to_pylist() == [2, 0]
    assert kept["row_id"].to_pylist() == ["r0", "r1"]
    assert schema_of(kept) == {"row_id": "string", "text": "string", "chars": "int64"}


def test_none_drops_the_row_with_a_reason():
    outcome = applied("map_python", table(n=[1, 2, 3]), path("drop_odd"))
    assert (ids(outcome.kept), ids(outcome.rejected)) == (["r1"], ["r0", "r2"])
    assert outcome.rejected is not None
    assert outcome.rejected["reject_reason"].to_pylist() == ["function_returned_none"] * 2


@pytest.mark.parametrize(
    ("function", "error_class", "message"),
    [
        ("fail_on_b", "ValueError", "I cannot do b"),
        ("exit_on_b", "SystemExit", "sys.exit(0) was called"),
        ("mute_on_b", "Mute", "its text cannot be shown: that raised RuntimeError"),
    ],
)
def test_a_row_on_which_the_function_raises_fails_alone(function: str, error_class: str, message: str):
    outcome = applied("map_python", table(text=["a", "b", "c"]), path(function))
    assert ids(outcome.kept) == ["r0", "r2"]
    assert outcome.failed is not None
    assert outcome.failed.select(["row_id", "error_class", "error_message"]).to_pylist() == [
        {"row_id": "r1", "error_class": error_class, "error_message": message}
    ]


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("string", "中", "中"),
        ("int64", -(2**63), -(2**63)),
        ("float64", 1.5, 1.5),
        ("float64", 3, 3.0),
        ("bool", False, False),
        ("json", {"a": [1, None]}, {"a": [1, None]}),
        ("json", "7", "7"),
        ("json", 2**70, 2**70),
        ("int64", None, None),
    ],
)
def test_a_value_of_the_declared_type_is_kept_exactly(kind: str, value: object, stored: object):
    rows = table(give=[{"new": value}])
    kept = applied("map_python", rows, {**path("give"), "columns": {"new": kind}}).kept
    [found] = values_of(kept, "new")
    assert (found, type(found)) == (stored, type(stored))


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("string", 7, "gave int for column 'new', expected str"),
        ("string", "\ud800", "does not fit"),
        ("int64", 1.0, "gave float for column 'new', expected int"),
        ("int64", True, "gave bool"),
        ("int64", 2**63, "does not fit"),
        ("float64", 2**53 + 1, "gave int for column 'new', expected float"),
        ("float64", "1", "gave str"),
        ("bool", 1, "gave int for column 'new', expected bool"),
    ],
)
def test_a_value_of_another_type_fails_its_row(kind: str, value: object, message: str):
    rows = table(give=[{"new": value}])
    outcome = applied("map_python", rows, {**path("give"), "columns": {"new": kind}})
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["WrongType"]
    assert message in outcome.failed["error_message"][0].as_py()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"other": 1}, "add it to the step's params, e.g. `columns: {other: string}`"),
        ({"row_id": "r9"}, "changed 'row_id'"),
        ({"text": 7}, "gave int for column 'text', expected str"),
        ([1], "returned list, expected a dict"),
    ],
)
def test_what_was_not_declared_fails_its_row_and_says_what_to_do(given: object, message: str):
    outcome = applied("map_python", table(text=["a"], give=[given]), path("give"))
    assert outcome.failed is not None
    assert message in outcome.failed["error_message"][0].as_py()


def test_a_function_that_spoils_its_row_changes_nothing():
    rows = table(text=["a"], give=[[0]])
    assert applied("map_python", rows, path("spoil_the_row")).kept == rows


def test_a_table_without_rows_gets_the_new_column():
    kept = applied(
        "map_python", table(text=["a"]).slice(0, 0), {**path("shout"), "columns": {"chars": "int64"}}
    ).kept
    assert schema_of(kept)["chars"] == "int64"


def test_another_source_is_another_identity():
    first, second = build_operator("map_python", path("shout")), build_operator("map_python", path("give"))
    assert first.identity() != second.identity()
    assert first.identity() == build_operator("map_python", {**path("shout"), "version": "2"}).identity()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"function": "no_such_module:f"}, "cannot be imported"),
        ({"function": f"{MODULE}:nothing"}, "has no 'nothing'"),
        ({"function": "no_colon"}, "package.module:name"),
        ({"function": f"{MODULE}:NOT_A_FUNCTION"}, "is a int, expected a function"),
        ({**path("shout"), "columns": {"row_id": "string"}}, "reserved column names: 'row_id'"),
        ({**path("shout"), "columns": {"x": "text"}}, "Input should be 'string'"),
    ],
)
def test_a_function_that_is_not_there_is_refused_at_load(params: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("map_python", params)
