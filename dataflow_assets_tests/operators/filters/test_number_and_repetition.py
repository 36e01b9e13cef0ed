"""`filter_number` and `filter_ngram_repetition`."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import ColumnType, table_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.filters.by_columns import FilterBy
from dataflow_assets.operators.filters.ngram_repetition import FilterNgramRepetition, repeated_share
from dataflow_assets.operators.filters.number import FilterNumber
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.sample_tables import ids, table


def filtered(values: list, kind: ColumnType, **bounds: float) -> Outcome:
    operator = build_operator("filter_number", {"column": "score", **bounds})
    assert isinstance(operator, FilterNumber)
    ids = [f"r:{number}" for number in range(len(values))]
    return operator.apply(table_of({"row_id": ids, "score": values}, {"row_id": "string", "score": kind}))


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_bounds_belong_to_the_range(kind: ColumnType) -> None:
    outcome = filtered([6, 7, 9, 10], kind, min=7, max=9)
    assert outcome.kept["score"].to_pylist() == [7, 9]
    assert outcome.rejected is not None
    assert outcome.rejected["reject_reason"].to_pylist() == ["too_low", "too_high"]


def test_whole_numbers_that_no_float_holds_are_compared() -> None:
    assert filtered([2**60 + 1, 2**63 - 1, -(2**63), 0], "int64", min=1).kept.num_rows == 2


BIG = 2**53
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3).map(lambda near: BIG + near)
BOUNDS = NUMBERS | st.floats(allow_nan=False) | st.floats(-3, 3)


@given(st.lists(NUMBERS, min_size=1), BOUNDS)
def test_whole_numbers_are_compared_exactly(values: list[int], bound: float) -> None:
    kept = [[value for value in values if value >= bound], [value for value in values if value <= bound]]
    found = [filtered(values, "int64", **{side: bound}).kept for side in ("min", "max")]
    assert [each["score"].to_pylist() for each in found] == kept


@given(st.lists(st.floats(allow_nan=False) | NUMBERS.map(float), min_size=1), BOUNDS)
def test_floats_are_compared_exactly_with_any_bound(values: list[float], bound: float) -> None:
    kept = [[value for value in values if value >= bound], [value for value in values if value <= bound]]
    found = [filtered(values, "float64", **{side: bound}).kept for side in ("min", "max")]
    assert [each["score"].to_pylist() for each in found] == kept


def test_a_number_one_above_the_bound_goes() -> None:
    assert filtered([BIG, BIG + 1], "int64", max=BIG).kept["score"].to_pylist() == [BIG]
    rules = build_operator("filter_by", {"rules": {"n": {"min": BIG + 1}}})
    assert isinstance(rules, FilterBy)
    assert ids(rules.apply(table(n=[BIG, BIG + 1])).kept) == ["r1"]


def test_what_is_no_number_fails_its_row() -> None:
    outcome = filtered([1.0, None, math.nan], "float64", min=0)
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["MissingValue", "WrongType"]
    assert filtered(["1", "2"], "string", min=0).kept.num_rows == 0


@pytest.mark.parametrize("bounds", [{}, {"min": 2, "max": 1}])
def test_bounds_that_make_no_sense_are_refused(bounds: dict) -> None:
    with pytest.raises(ConfigError, match="min"):
        build_operator("filter_number", {"column": "score", **bounds})


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        ("a b", 0.0),
        ("a b c d e", 0.0),
        ("one two three one two three", 0.25),
        ("Yes yes YES yes", 0.5),
        ("好好好好", 0.5),
        ("今天天气好今天天气好", 0.375),
        ("用API写用API写", 0.25),
    ],
)
def test_the_share_of_trigrams_that_come_again(text: str, share: float) -> None:
    assert repeated_share(text, 3) == share


def test_texts_that_go_in_circles_are_rejected() -> None:
    operator = build_operator("filter_ngram_repetition", {"n": 3, "max_share": 0.3})
    assert isinstance(operator, FilterNgramRepetition)
    assert operator.reason("so it is " * 9) == "repeated_ngrams"
    assert operator.reason("The sheep stand on the hill and look at the sea.") is None
