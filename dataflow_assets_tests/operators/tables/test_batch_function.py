import pytest

from dataflow_assets.batch import schema_of, values_of
from dataflow_assets.operators import Outcome, build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

ROWS = table(n=[0, 1, 2, 3], text=["", "a", "中中", "d"])


def mapped(function: str, rows=ROWS, name: str = "map_arrow", **columns: str) -> Outcome:
    path = f"dataflow_assets_tests.operators.batch_functions:{function}"
    return applied(name, rows, {"function": path, "columns": columns})


@pytest.mark.parametrize(("name", "function"), [("map_arrow", "count_chars"), ("map_pandas", "frame_chars")])
def test_a_function_adds_a_declared_column(name: str, function: str):
    kept = mapped(function, name=name, chars="int64").kept
    assert kept["chars"].to_pylist() == [0, 1, 2, 1]
    assert schema_of(kept) == {"row_id": "string", "n": "int64", "text": "string", "chars": "int64"}


@pytest.mark.parametrize(("name", "function"), [("map_arrow", "odd_only"), ("map_pandas", "frame_odd")])
def test_a_row_that_the_function_leaves_out_is_rejected(name: str, function: str):
    outcome = mapped(function, name=name)
    assert (ids(outcome.kept), ids(outcome.rejected)) == (["r1", "r3"], ["r0", "r2"])
    assert outcome.rejected is not None
    assert outcome.rejected["reject_reason"].to_pylist() == ["function_dropped_row"] * 2


def test_a_reason_of_its_own_is_kept():
    outcome = mapped("with_reasons")
    assert ids(outcome.kept) == ["r0", "r1"]
    assert outcome.rejected is not None
    assert outcome.rejected["reject_reason"].to_pylist() == ["n_is_2", "n_is_3"]


def test_rows_come_in_their_order_and_columns_that_are_left_out_stay():
    assert mapped("backwards").kept == ROWS


@pytest.mark.parametrize(
    ("function", "error_class", "message"),
    [
        ("fails_on_two", "ValueError", "two is too many"),
        ("exits_on_two", "SystemExit", "sys.exit('two is the end') was called"),
    ],
)
def test_the_row_on_which_it_raises_fails_alone(function: str, error_class: str, message: str):
    outcome = mapped(function)
    assert ids(outcome.kept) == ["r0", "r1", "r3"]
    assert outcome.failed is not None
    assert outcome.failed.select(["row_id", "error_class", "error_message"]).to_pylist() == [
        {"row_id": "r2", "error_class": error_class, "error_message": message}
    ]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("doubles", "returned a 'row_id' twice"),
        ("renames_rows", "that it was not given"),
        ("drops_ids", "returned no column 'row_id'"),
        ("undeclared", "add it to the step's params"),
        ("wrong_type", "that are no int64: found the Arrow type string"),
        ("numbered_ids", "for column 'row_id' that are no string: found the Arrow type int64"),
        ("numbered_reasons", "for column 'reject_reason' that are no string"),
        ("no_table", "returned list, expected a pyarrow Table"),
    ],
)
def test_what_it_may_not_return_fails_the_rows_and_says_what_to_do(function: str, message: str):
    outcome = mapped(function)
    assert ids(outcome.failed) == ids(ROWS)
    assert outcome.failed is not None
    assert set(outcome.failed["error_class"].to_pylist()) == {"WrongType"}
    assert message in outcome.failed["error_message"][0].as_py()


def test_nested_values_become_json():
    kept = mapped("nested", inner="json").kept
    assert values_of(kept, "inner")[3] == {"a": [3]}


def test_a_text_that_is_no_json_fails_its_row_and_another_becomes_canonical():
    rows = table(text=['{"a": 1}', "not json", None, "NaN", '"\\u00e9"'])
    outcome = mapped("json_texts", rows, inner="json")
    assert ids(outcome.failed) == ["r1", "r3"]
    assert outcome.kept["inner"].to_pylist() == ['{"a":1}', None, '"é"']


def test_json_columns_are_python_values_in_a_frame():
    rows = table(meta=[{"b": 1, "a": 2}, None, {}, {"c": None}])
    kept = mapped("frame_meta", rows, "map_pandas", keys="json").kept
    assert values_of(kept, "keys") == [["a", "b"], None, [], ["c"]]
    assert kept["meta"] == rows["meta"]


def test_integers_with_nulls_stay_exact_in_a_frame():
    rows = table(n=[2**62, None])
    kept = mapped("frame_sum", rows, "map_pandas", big="int64", share="float64").kept
    assert kept["big"].to_pylist() == [2**62 + 1, None]
    assert kept["share"].to_pylist() == [2.0**61, None]


@pytest.mark.parametrize(("name", "function"), [("map_arrow", "count_chars"), ("map_pandas", "frame_chars")])
def test_a_table_without_rows_gets_the_column(name: str, function: str):
    assert schema_of(mapped(function, ROWS.slice(0, 0), name, chars="int64").kept)["chars"] == "int64"


def test_the_source_of_the_function_is_part_of_the_step():
    paths = [f"dataflow_assets_tests.operators.batch_functions:{name}" for name in ("doubles", "nested")]
    first, second = (build_operator("map_arrow", {"function": path}).identity() for path in paths)
    assert first != second
