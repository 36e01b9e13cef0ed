"""What the adapter does with rows: the law, exact values, what it refuses, what it says before a run."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_assets.batch import Schema, rows_of, schema_of, table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators import Outcome, build_operator
from dataflow_assets.pipeline import Pipeline
from dataflow_assets_tests.conftest import Command

pytest.importorskip("dataflow", reason="open-dataflow is not installed")
OWN = "dataflow_assets_tests.opendcai.frame_functions"
SCHEMA: Schema = {
    "row_id": "string",
    "text": "string",
    "n": "int64",
    "share": "float64",
    "good": "bool",
    "tags": "json",
}
TABLE = table_of(
    {
        "row_id": ["a:1", "a:2", "a:3", "a:4"],
        "text": ["One two", "007", "Why?", "最后 一行"],
        "n": [2**53 + 1, None, -3, 2**62],
        "share": [0.1, None, -0.0, 1e300],
        "good": [True, None, False, True],
        "tags": [{"a": [1, 1.0, True, None]}, None, 2**70, ["x"]],
    },
    SCHEMA,
)


def done(operator: str, table: pa.Table = TABLE, **params: object) -> Outcome:
    """What became of the rows; the law holds."""
    built = build_operator("opendcai", {"operator": operator, **params})
    outcome = built.apply(table)  # pyright: ignore[reportAttributeAccessIssue]
    check_law(built, table, outcome, "here")
    return outcome


def own(name: str) -> str:
    return f"{OWN}.{name}"


@pytest.mark.parametrize("path", ["os:system", "sys.exit", "math.sin", "nope.Class"])
def test_a_module_without_a_source_file_is_told_before_the_run(path: str):
    operator = build_operator("opendcai", {"operator": path})
    assert operator.declared is None  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ConfigError, match=f"no operator '{path}' of open-dataflow|has no class"):
        operator.check_ready()


def test_a_row_on_which_it_raises_fails_alone():
    outcome = done(own("Shouting"))
    assert outcome.kept["text"].to_pylist() == ["ONE TWO!", "007!", "最后 一行!"]
    assert outcome.failed is not None
    assert outcome.failed.select(["row_id", "text", "error_class", "error_message"]).to_pylist() == [
        {"row_id": "a:3", "text": "Why?", "error_class": "ValueError", "error_message": "a question"}
    ]


def test_values_that_it_did_not_touch_are_what_they_were():
    kept = done(own("Backwards")).kept
    assert kept.equals(TABLE)


def test_a_rewritten_column_keeps_big_integers_that_pandas_made_floats_of():
    whole = TABLE.select(["row_id", "n"]).filter(TABLE["n"].is_valid())
    kept = done(own("Holes"), whole).kept
    assert kept["n"].to_pylist() == [2**53 + 1, 5, 2**62]


def test_a_nested_value_that_is_changed_in_place_is_changed():
    kept = done(own("Nested")).kept
    assert [row["tags"] for row in rows_of(kept)] == [{"a": [1, 1.0, True, None]}, None, 2**70, ["x", "new"]]


def test_rows_come_out_in_the_order_in_which_they_came_in():
    assert done(own("Backwards")).kept["row_id"].to_pylist() == TABLE["row_id"].to_pylist()


def test_rows_that_it_leaves_out_are_rejected_with_its_class():
    outcome = done("WordNumberFilter", init={"min_words": 2}, run={"input_key": "text"})
    assert outcome.rejected is not None
    assert outcome.rejected.select(["row_id", "reject_reason"]).to_pylist() == [
        {"row_id": "a:2", "reject_reason": "WordNumberFilter"},
        {"row_id": "a:3", "reject_reason": "WordNumberFilter"},
    ]
    assert schema_of(outcome.kept)["word_number_filter_label"] == "json"


def test_rows_that_lose_their_id_are_refused_by_name():
    with pytest.raises(RunError, match=r"Words wrote 6 rows without the column 'row_id'.*one_by_one"):
        done(own("Words"), columns={"word": "string"})


def test_one_by_one_they_are_children_of_the_row():
    outcome = done(own("Words"), one_by_one=True, splits=True, columns={"word": "string"})
    assert outcome.kept.select(["row_id", "text", "word"]).to_pylist() == [
        {"row_id": "a:1/0", "text": "One two", "word": "One"},
        {"row_id": "a:1/1", "text": "One two", "word": "two"},
        {"row_id": "a:2/0", "text": "007", "word": "007"},
        {"row_id": "a:3/0", "text": "Why?", "word": "Why?"},
        {"row_id": "a:4/0", "text": "最后 一行", "word": "最后"},
        {"row_id": "a:4/1", "text": "最后 一行", "word": "一行"},
    ]


def test_several_rows_for_one_must_be_declared():
    with pytest.raises(RunError, match="Words wrote several rows for one; say `splits: true`"):
        done(own("Words"), one_by_one=True, columns={"word": "string"})


def test_an_id_that_it_was_not_given_is_refused():
    with pytest.raises(RunError, match="Inventing wrote a row with the row_id 'x:1'"):
        done(own("Inventing"))


def test_an_operator_that_writes_nothing_is_refused():
    with pytest.raises(RunError, match="Nothing wrote nothing"):
        done(own("Nothing"))


def test_a_column_that_is_not_declared_is_refused_with_what_to_write():
    with pytest.raises(RunError, match=r"'length', which is not declared; add .*columns: {length: string}"):
        done("PandasOperator", init={"process_fn": [{"object": own("with_length")}]})


def test_a_value_that_its_column_cannot_hold_fails_its_row():
    outcome = done(
        "WordNumberFilter",
        run={"input_key": "text"},
        init={"min_words": 0},
        columns={"word_number_filter_label": "string"},
    )
    assert outcome.failed is not None and outcome.failed.num_rows == 4
    assert set(outcome.failed["error_class"].to_pylist()) == {"WrongType"}


def test_no_rows_give_no_rows():
    outcome = done(own("Shouting"), TABLE.slice(0, 0))
    assert (outcome.kept.num_rows, outcome.rejected, outcome.failed) == (0, None, None)


def test_an_operator_that_looks_at_all_rows_does_not_set_a_row_aside():
    with pytest.raises(RunError, match=r"AttributeError.*looks at 4 rows at once"):
        done(
            "HashDeduplicateFilter",
            TABLE.set_column(
                1, TABLE.schema.field("text"), pa.array(["a", None, "a", "b"], pa.large_string())
            ),
            run={"input_key": "text"},
        )


def problems(**params: object) -> str:
    """What is said before a run."""
    with pytest.raises(ConfigError) as caught:
        build_operator("opendcai", params).check_ready()
    return str(caught.value)


def test_a_name_that_is_not_there_is_answered_with_the_nearest():
    assert "did you mean LowercaseRefiner" in problems(operator="LowerCaseRefiner")


def test_wrong_and_missing_arguments_are_told_before_a_run():
    said = problems(operator="WordNumberFilter", init={"min_word": 2})
    assert "WordNumberFilter has no argument 'min_word'; it has: min_words, max_words" in said
    assert "WordNumberFilter.run needs the argument 'input_key'" in said


def test_a_package_that_it_imports_is_asked_for_before_a_run():
    said = problems(operator="RemoveContractionsRefiner", run={"input_key": "text"})
    assert "imports contractions, which is not installed; run `pip install contractions`" in said


def test_an_operator_that_asks_a_model_is_sent_to_the_other_type():
    assert "use the type `opendcai_llm`" in problems(operator="PromptedGenerator")


def test_nothing_of_it_is_imported_before_a_run(tmp_path: Path):
    from dataflow_assets_tests.opendcai.modules import modules_after

    params = {"operator": "SemDeduplicateFilter", "run": {"input_key": "text"}, "scope": "batch"}
    loaded = modules_after(f"build_operator('opendcai', {json.dumps(params)}).check_ready()")
    assert not loaded & {"torch", "transformers", "dataflow"}


def pipeline(**step: object) -> Pipeline:
    """A pipeline with this step."""
    return Pipeline(
        name="p", source={"path": "in.jsonl"}, **{"batch_rows": 10, "steps": [{"name": "s", **step}]}
    )


def test_one_that_needs_all_rows_needs_one_batch():
    params = {"operator": "MinHashDeduplicateFilter", "run": {"input_key": "text"}}
    with pytest.raises(ConfigError, match="needs all rows of the data set at once, and batch_rows is 10"):
        pipeline(type="opendcai", params=params)
    assert pipeline(type="opendcai", params={**params, "scope": "batch"})


def test_one_that_needs_all_rows_has_no_replicas():
    params = {"operator": "MinHashDeduplicateFilter", "run": {"input_key": "text"}}
    with pytest.raises(ConfigError, match="cannot be divided between replicas"):
        Pipeline(
            name="p",
            source={"path": "in.jsonl"},
            batch_rows=None,
            steps=[{"name": "s", "type": "opendcai", "params": params, "replicas": 2}],
        )


def test_the_fingerprint_has_the_package_and_the_class():
    built = build_operator("opendcai", {"operator": "LowercaseRefiner", "run": {"input_key": "text"}})
    assert built.identity() == {"package": "open-dataflow 1.0.13"}
    own_class = build_operator("opendcai", {"operator": own("Shouting")})
    assert list(own_class.identity()) == ["source"]


def test_its_operators_are_listed_with_the_type_that_runs_them(tmp_path: Path, command_here: Command):
    listed = {
        each["operator"]: each
        for each in json.loads(command_here(tmp_path, "operators", "--open-dataflow", "--json").out)
    }
    assert len(listed) == 196
    assert listed["general_text.LowercaseRefiner"] == {
        "operator": "general_text.LowercaseRefiner",
        "type": "opendcai",
        "lacks": [],
    }
    assert listed["core_text.PromptedGenerator"]["type"] == "opendcai_llm"
    assert listed["general_text.RemoveContractionsRefiner"]["lacks"] == ["contractions"]
