"""Columns along the graph: what is missing, what must not be written, and who brings what to a join."""

import pytest

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.columns import check_columns, join_plan
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests import pipeline_operators as pipeline_operators

COLUMNS: Schema = {"row_id": "string", "text": "string", "title": "string", "n": "int64"}


def _edit(name: str, column: str, *parents: str) -> Step:
    return Step(name=name, type="made_suffix", params={"column": column}, depends_on=list(parents))


def _answer(name: str, key: str, *parents: str) -> Step:
    params = {"input_key": "text", "output_key": key}
    return Step(name=name, type="made_answer", params=params, depends_on=list(parents))


def _shape(name: str, params: dict[str, object], *parents: str) -> Step:
    return Step(name=name, type="made_shape", params=params, depends_on=list(parents))


def _split(name: str, *parents: str) -> Step:
    return Step(name=name, type="made_chunk", params={"chunk_size": 9}, depends_on=list(parents))


def _made(*steps: Step) -> Pipeline:
    return Pipeline(name="p", source=SourceSpec(path="x"), steps=list(steps))


def _mistakes(*steps: Step, columns: Schema = COLUMNS) -> list[str]:
    try:
        check_columns(_made(*steps), columns)
    except ConfigError as error:
        return error.problems
    return []


def test_the_columns_after_each_step_are_known():
    pipeline = _made(
        _answer("a", "answer"), _shape("b", {"drop": ["n"], "rename": {"text": "question"}}, "a")
    )
    assert check_columns(pipeline, COLUMNS) == {
        "source": COLUMNS,
        "a": {**COLUMNS, "answer": "string"},
        "b": {"row_id": "string", "question": "string", "title": "string", "answer": "string"},
    }


def test_row_id_is_there_also_where_the_source_does_not_say_it():
    assert check_columns(_made(_edit("a", "text")), {"text": "string"})["a"] == {
        "text": "string",
        "row_id": "string",
    }


def test_a_missing_column_is_told_with_what_there_is_and_what_is_near():
    assert _mistakes(_edit("a", "txet")) == [
        "pipeline 'p': step 1 'a' (made_suffix): reads the column 'txet', which is not there "
        "(there are: text, title, n); did you mean 'text'?"
    ]


def test_a_column_is_missing_behind_the_step_that_dropped_or_renamed_it():
    lines = _mistakes(
        _shape("a", {"drop": ["n"], "rename": {"text": "t"}}), _edit("b", "text", "a"), _edit("c", "n", "a")
    )
    assert [line.split(":")[1] for line in lines] == [
        " step 2 'b' (made_suffix)",
        " step 3 'c' (made_suffix)",
    ]


def test_mistakes_of_all_steps_come_together_and_none_twice():
    lines = _mistakes(
        _edit("a", "x"), _edit("b", "x", "a"), _edit("c", "y", "b"), _shape("d", {"drop": ["z"]}, "c")
    )
    assert ["'x'" in lines[0], "'y'" in lines[1], "'z'" in lines[2], len(lines)] == [True, True, True, 3]


@pytest.mark.parametrize("column", ["row_id", "reject_reason", "error_class", "error_message", "attempts"])
def test_a_reserved_column_is_not_written(column):
    (line,) = _mistakes(_answer("a", column))
    assert f"writes the column {column!r}, which is kept by the package" in line


def test_a_column_is_not_renamed_to_a_reserved_one():
    (line,) = _mistakes(_shape("a", {"rename": {"text": "attempts"}}))
    assert "writes the column 'attempts'" in line


@pytest.mark.parametrize("params", [{"drop": ["row_id"]}, {"rename": {"row_id": "id"}}])
def test_row_id_is_not_dropped(params):
    assert any("drops or renames the column 'row_id'" in line for line in _mistakes(_shape("a", params)))


def test_a_source_with_a_reserved_column_is_told():
    (line,) = _mistakes(_edit("a", "text"), columns={**COLUMNS, "attempts": "int64"})
    assert line.startswith("pipeline 'p': source: the column 'attempts'") and "rename" in line


def test_a_step_does_not_replace_a_column_that_it_does_not_read():
    (line,) = _mistakes(_answer("a", "title"))
    assert "writes the column 'title', which is there already and which it does not read" in line
    assert not _mistakes(_answer("a", "text"))


def test_a_function_that_may_change_any_column_may_replace_one():
    params: dict[str, object] = {"function": "json:dumps", "columns": {"n": "string"}}
    step = Step(name="a", type="map_python", params=params)
    assert check_columns(_made(step), COLUMNS)["a"]["n"] == "string"


def test_an_operator_that_cannot_say_its_columns_is_named():
    (line,) = _mistakes(Step(name="a", type="made_broken"))
    assert (
        line
        == "pipeline 'p': step 1 'a' (made_broken): the operator cannot say its columns: KeyError: 'nowhere'"
    )


def test_a_join_takes_each_column_from_the_branch_that_changed_it():
    pipeline = _made(
        _edit("a", "text"), _edit("b", "title", "a"), _answer("c", "answer", "a"), _edit("d", "n", "b", "c")
    )
    assert join_plan(pipeline, COLUMNS) == {
        "d": {"row_id": "b", "text": "b", "title": "b", "n": "b", "answer": "c"}
    }
    assert list(check_columns(pipeline, COLUMNS)["d"]) == ["row_id", "text", "title", "n", "answer"]


def test_a_join_takes_the_later_of_two_values_whatever_the_order_of_parents():
    steps = [_edit("a", "text"), _edit("b", "text", "a"), _edit("c", "title", "a")]
    assert join_plan(_made(*steps, _edit("d", "n", "c", "b")), COLUMNS)["d"]["text"] == "b"
    assert join_plan(_made(*steps, _edit("d", "n", "b", "c")), COLUMNS)["d"]["text"] == "b"
    assert join_plan(_made(*steps, _edit("d", "n", "source", "b")), COLUMNS)["d"]["text"] == "b"


def test_a_column_that_both_branches_changed_is_a_conflict_that_says_what_to_do():
    (line,) = _mistakes(_edit("a", "text"), _edit("b", "text", "source"), _edit("c", "n", "a", "b"))
    assert line == (
        "pipeline 'p': step 3 'c' (made_suffix): joins two values of the column 'text': 'a' changed it on "
        "the way to 'a', and 'b' on the way to 'b'; give it another name in one branch with rename_columns"
    )


def test_a_conflict_is_over_where_one_branch_renames():
    steps = [
        _edit("a", "text"),
        _edit("b", "text", "source"),
        _shape("r", {"rename": {"text": "other"}}, "b"),
    ]
    plan = join_plan(_made(*steps, _edit("c", "n", "a", "r")), COLUMNS)["c"]
    assert (plan["text"], plan["other"]) == ("a", "r")


def test_three_parents_are_joined():
    steps = [_edit("a", "text"), _edit("b", "title", "source"), _answer("c", "answer", "source")]
    plan = join_plan(_made(*steps, _edit("d", "n", "a", "b", "c")), COLUMNS)["d"]
    assert [plan[name] for name in ("text", "title", "answer", "n")] == ["a", "b", "c", "a"]


def test_the_provenance_goes_on_behind_a_join():
    steps = [
        _edit("a", "text"),
        _edit("b", "title", "source"),
        _edit("j", "n", "a", "b"),
        _edit("k", "text", "j"),
    ]
    assert join_plan(_made(*steps, _edit("e", "n", "b", "k")), COLUMNS)["e"]["text"] == "k"


def test_a_join_of_split_rows_with_whole_ones_is_refused():
    (line,) = _mistakes(_split("a"), _edit("b", "title", "source"), _edit("c", "n", "a", "b"))
    assert "joins 'a' and 'b' on row_id, but a splits the rows" in line


def test_a_join_behind_the_same_split_is_right():
    assert not _mistakes(
        _split("a"), _edit("b", "title", "a"), _edit("c", "text", "a"), _edit("d", "n", "b", "c")
    )


def test_a_value_of_the_environment_is_not_in_a_message(tmp_path, monkeypatch):
    from dataflow_assets_tests.pipeline_files import HEAD, load

    monkeypatch.setenv("KEY", "sk-secret")
    pipeline = load(tmp_path, HEAD + "steps:\n- {name: a, type: made_suffix, params: {column: '${KEY}'}}\n")
    with pytest.raises(
        ConfigError, match=r"p.yaml:4: step 1 'a' \(made_suffix\): reads the column '\$\{KEY\}'"
    ):
        check_columns(pipeline, COLUMNS)
