"""limit, sample, sample_rows and quota: which rows stay."""

import math
from collections import Counter

import pytest

from dataflow_assets.batch import schema_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table
from dataflow_assets_tests.operators.tables.dataset_runs import kept, numbers, outcomes, rejected


@pytest.mark.parametrize(
    ("params", "first", "last"),
    [
        ({"rows": 3}, 0, 3),
        ({"rows": 3, "skip": 4}, 4, 7),
        ({"rows": 99, "skip": 8}, 8, 10),
        ({"rows": 0}, 0, 0),
    ],
)
def test_limit_keeps_the_first_rows(params: dict, first: int, last: int):
    found = outcomes("limit", params, numbers(10), 4)
    assert kept(found) == [f"r{n}" for n in range(first, last)]
    assert set(rejected(found).values()) <= {"outside_limit"}


def test_a_sample_has_about_its_share_and_a_smaller_one_is_part_of_it():
    rows = numbers(2000)
    tenth, half = (ids(applied("sample", rows, {"share": share}).kept) for share in (0.1, 0.5))
    assert 150 < len(tenth) < 250 and 900 < len(half) < 1100
    assert set(tenth) <= set(half)


def test_a_row_is_sampled_by_its_id_wherever_it_is():
    rows = numbers(100)
    whole = ids(applied("sample", rows, {"share": 0.3, "seed": 5}).kept)
    parts = [
        ids(applied("sample", rows.slice(begin, 7), {"share": 0.3, "seed": 5}).kept)
        for begin in range(0, 100, 7)
    ]
    assert [row_id for part in parts for row_id in part] == whole


@pytest.mark.parametrize(("share", "stay"), [(0.0, 0), (1.0, 300)])
def test_none_and_all_are_exact(share: float, stay: int):
    assert applied("sample", numbers(300), {"share": share}).kept.num_rows == stay


def test_values_have_shares_of_their_own():
    rows = numbers(300)
    sampled = applied("sample", rows, {"share": 0.0, "by": "lang", "shares": {"zh": 1.0}}).kept
    assert set(sampled["lang"].to_pylist()) == {"zh"}
    nulls = applied(
        "sample",
        rows.set_column(2, "lang", rows["meta"]),
        {"share": 0, "by": "lang", "shares": {"null": 1.0}},
    )
    assert nulls.kept.num_rows == rows["meta"].null_count


def test_nan_and_infinity_are_values_too():
    rows = table(f=[1.0, math.nan, -math.inf, math.nan])
    sampled = applied("sample", rows, {"share": 0.0, "by": "f", "shares": {"NaN": 1.0, "-Infinity": 1.0}})
    assert ids(sampled.kept) == ["r1", "r2", "r3"]
    assert kept(outcomes("quota", {"by": "f", "max_rows": 1}, rows, 3)) == ["r0", "r1", "r2"]
    assert len(kept(outcomes("sample_rows", {"by": "f", "rows": 3}, rows, 3))) == 3


@pytest.mark.parametrize("rows", [0, 1, 13, 60, 99])
@pytest.mark.parametrize("by", [None, "lang"])
def test_an_exact_sample_has_so_many_rows(rows: int, by: str | None):
    params = {"rows": rows, **({"by": by} if by else {})}
    assert len(kept(outcomes("sample_rows", params, numbers(60), 7))) == min(rows, 60)


def strata(rows: list[str], params: dict) -> Counter:
    found = outcomes("sample_rows", {"by": "s", **params}, table(s=rows), 5)
    return Counter(row["s"] for outcome in found for row in outcome.kept.to_pylist())


def test_strata_keep_their_shares_or_get_the_same():
    rows = ["a"] * 60 + ["b"] * 30 + ["c"] * 2
    assert strata(rows, {"rows": 46}) == {"a": 30, "b": 15, "c": 1}
    assert strata(rows, {"rows": 10}) == {"a": 7, "b": 3}
    assert strata(rows, {"rows": 12, "allocation": "equal"}) == {"a": 5, "b": 5, "c": 2}
    assert strata(rows, {"rows": 90, "allocation": "equal"}) == {"a": 58, "b": 30, "c": 2}


def test_a_quota_keeps_the_first_or_the_best_of_each_category():
    rows = table(kind=["a", "a", "b", "a", "b", None], score=[1.0, 3.0, None, 2.0, 0.5, 9.0])
    assert kept(outcomes("quota", {"by": "kind", "max_rows": 1}, rows, 2)) == ["r0", "r2", "r5"]
    best = outcomes("quota", {"by": "kind", "max_rows": 1, "best_by": "score"}, rows, 2)
    assert kept(best) == ["r1", "r4", "r5"]
    assert rejected(best) == {"r0": "over_quota", "r2": "over_quota", "r3": "over_quota"}
    lowest = {"by": "kind", "max_rows": 1, "best_by": "score", "lowest_is_best": True}
    assert kept(outcomes("quota", lowest, rows, 4)) == ["r0", "r4", "r5"]


@pytest.mark.parametrize(
    ("params", "stay"),
    [
        ({"max_share": 0.29}, {"a": 29, "b": 10}),
        ({"max_share": 0.29, "max_rows": 12}, {"a": 12, "b": 10}),
        ({"rows": {"b": 3}}, {"a": 90, "b": 3}),
        ({"max_rows": 1, "rows": {"b": 3}}, {"a": 1, "b": 3}),
    ],
)
def test_the_least_bound_counts_and_a_category_may_have_its_own(params: dict, stay: dict):
    rows = table(kind=["a"] * 90 + ["b"] * 10)
    found = outcomes("quota", {"by": "kind", **params}, rows, 30)
    assert Counter(row["kind"] for outcome in found for row in outcome.kept.to_pylist()) == stay


def test_big_integers_are_ranked_exactly():
    rows = table(kind=["a"] * 3, n=[2**63 - 2, -(2**63), 2**63 - 1])
    assert kept(outcomes("quota", {"by": "kind", "max_rows": 1, "best_by": "n"}, rows, 1)) == ["r2"]


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("quota", {"by": "a"}, "give max_rows, max_share or rows"),
        ("quota", {"by": "a", "rows": {"x": -1}}, "wrong: x"),
        ("quota", {"by": "a", "max_rows": 1, "lowest_is_best": True}, "needs best_by"),
        ("sample", {"share": 1.5}, "less than or equal to 1"),
        ("sample", {"share": 0.5, "shares": {"x": 1.0}}, "shares needs `by`"),
        ("sample", {"share": 0.5, "by": "a", "shares": {"x": 7.0}}, "wrong: x"),
        ("limit", {"rows": -1}, "greater than or equal to 0"),
    ],
)
def test_wrong_numbers_are_refused_at_load(name: str, params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator(name, params)


def test_a_column_of_texts_ranks_nothing():
    operator = build_operator("quota", {"by": "n", "max_rows": 1, "best_by": "lang"})
    with pytest.raises(ConfigError, match="'lang' of `best_by` is string"):
        operator.output_schema(schema_of(numbers(3)))
