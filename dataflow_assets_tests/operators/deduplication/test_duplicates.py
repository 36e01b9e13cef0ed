from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import DatasetOperator, Outcome, build_operator
from dataflow_assets_tests.operators.deduplication.data_sets import dropped, kept_ids, outcomes, rejected_rows
from dataflow_assets_tests.operators.sample_tables import case_rows, table

values = st.none() | st.sampled_from(["", "a", "b", "ab", "bc", "中"])
pairs = st.lists(st.tuples(values, values), max_size=12)


def deduplicated(rows: pa.Table, batch_rows: int, columns: Sequence[str] = ("text",)) -> list[Outcome]:
    return outcomes("drop_duplicates", rows, batch_rows, {"columns": list(columns)})


@pytest.mark.parametrize("batch_rows", [3, 1, 9])
def test_case_29_duplicates_in_other_batches_are_found(batch_rows: int):
    rows = case_rows("29_dedup_across_batches")
    whole = table(id=[row["id"] for row in rows], text=[row["text"] for row in rows])
    whole = whole.set_column(
        0, whole.schema.field(0), pa.array([str(row["id"]) for row in rows], pa.large_string())
    )
    outcomes = deduplicated(whole, batch_rows)
    assert kept_ids(outcomes) == ["100", "101", "103", "105", "107", "108"]
    assert dropped(outcomes) == {"102": "100", "104": "101", "106": "100"}


def test_a_rejected_row_says_why_and_of_which_row():
    [outcome] = deduplicated(table(text=["a", "b", "a"], n=[1, 2, 3]), 3)
    assert outcome.rejected is not None
    expected = {"row_id": "r2", "text": "a", "n": 3, "reject_reason": "duplicate", "duplicate_of": "r0"}
    assert outcome.rejected.to_pylist() == [expected]
    assert outcome.kept.column_names == ["row_id", "text", "n"]


@given(pairs, st.integers(1, 5))
def test_the_first_of_equal_rows_stays_at_every_batch_size(rows: list[tuple], batch_rows: int):
    first: dict[tuple, str] = {}
    copies: dict[str, str] = {}
    for place, row in enumerate(rows):
        if row != (None, None) and first.setdefault(row, f"r{place}") != f"r{place}":
            copies[f"r{place}"] = first[row]
    whole = table(x=[row[0] for row in rows], y=[row[1] for row in rows])
    outcomes = deduplicated(whole, batch_rows, ["x", "y"])
    assert dropped(outcomes) == copies
    assert kept_ids(outcomes) == [f"r{place}" for place in range(len(rows)) if f"r{place}" not in copies]


@pytest.mark.parametrize(
    ("column", "stay"),
    [
        (["", None, "", None], ["r0", "r1", "r3"]),
        ([1, 2, 1, None], ["r0", "r1", "r3"]),
        ([1.5, 1.25, 1.5], ["r0", "r1"]),
        ([0.0, -0.0, 1e-300, 5e-324], ["r0", "r2", "r3"]),
        ([True, False, True], ["r0", "r1"]),
        ([{"a": 1}, {"a": 2}, {"a": 1}], ["r0", "r1"]),
        (["1", 1, "1"], ["r0", "r1"]),
        (["e\u0301", "é"], ["r0", "r1"]),
        (["\ud800", "\ud801", "\ud800"], ["r0", "r1"]),
    ],
)
def test_only_the_same_value_is_a_duplicate(column: list[object], stay: list[str]):
    assert kept_ids(deduplicated(table(text=column), 2)) == stay


def test_normalized_texts_differ_neither_in_white_space_nor_in_the_coding_of_accents():
    rows = table(text=["caf\u00e9 au  lait", " cafe\u0301 au\nlait ", "Caf\u00e9 au lait", None, "", " "])
    found = outcomes("drop_duplicates", rows, 2, {"normalize": True})
    assert dropped(found) == {"r1": "r0", "r5": "r4"}
    assert rejected_rows(found)[0]["text"] == " cafe\u0301 au\nlait "


def test_of_json_only_texts_are_normalized():
    rows = table(text=["a  b", "a\nb", " a b", {"k": "x  y"}, {"k": "x y"}, "\ud800  a", "\ud800 a"])
    found = outcomes("drop_duplicates", rows, 2, {"normalize": True})
    assert dropped(found) == {"r1": "r0", "r2": "r0", "r6": "r5"}


def test_columns_are_not_run_together():
    rows = table(x=["a", "ab", "1:a", ""], y=["bc", "c", "", "1:a"])
    assert len(kept_ids(deduplicated(rows, 4, ["x", "y"]))) == 4


def test_no_batch_and_an_empty_batch_are_fine():
    operator = build_operator("drop_duplicates", {})
    assert isinstance(operator, DatasetOperator)
    assert list(operator.decide([])) == []
    empty = operator.summarize(table(text=["a"]).slice(0, 0))
    [(key, verdict)] = operator.decide([("b0", empty)])
    assert (key, verdict.num_rows) == ("b0", 0)


def test_a_batch_that_nothing_changed_for_gets_an_equal_verdict():
    operator = build_operator("drop_duplicates", {})
    assert isinstance(operator, DatasetOperator)
    first, second = operator.summarize(table(text=["a", "b"])), operator.summarize(table(text=["c", "a"]))
    changed = operator.summarize(table(text=["z", "a"]))
    before, after = (
        dict(operator.decide([("1", first), ("2", second)])),
        dict(operator.decide([("1", first), ("2", changed)])),
    )
    assert before["1"].equals(after["1"])
    assert before["2"].equals(after["2"])


@pytest.mark.parametrize(("columns", "message"), [([], "at least 1 item"), (["a", "a"], "named twice")])
def test_wrong_columns_are_refused_at_load(columns: list[str], message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("drop_duplicates", {"columns": columns})


def test_a_column_that_it_would_hide_is_refused():
    with pytest.raises(ConfigError, match="duplicate_of"):
        build_operator("drop_duplicates", {}).output_schema({"row_id": "string", "duplicate_of": "string"})
