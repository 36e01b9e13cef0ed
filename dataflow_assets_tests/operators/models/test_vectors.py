"""Semantic duplicates and diverse rows: equal to the plain rule, whatever the batches."""

import itertools
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators import DatasetOperator, Outcome, build_operator
from dataflow_assets_tests.operators.sample_tables import ids

BATCH_ROWS = [1, 3, 7, 1000]
OPERATORS: dict[str, dict[str, object]] = {
    "drop_semantic_duplicates": {"threshold": 0.8},
    "select_diverse": {"share": 0.5},
}


def vectors(rows: int, dimensions: int = 4, seed: int = 1) -> list[list[float]]:
    """Vectors of all lengths, some of them close to each other, some the same."""
    made = np.random.default_rng(seed).normal(size=(rows, dimensions))
    made[1::5] = made[::5][: len(made[1::5])] * 3 + 0.01
    made[2::7] = made[1::7][: len(made[2::7])]
    return made.tolist()


def rows_of(values: Sequence[object]) -> pa.Table:
    ids = [f"r{row}" for row in range(len(values))]
    return table_of({"row_id": ids, "embedding": values}, {"row_id": "string", "embedding": "json"})


def decided(
    name: str, params: Mapping[str, object], values: Sequence[object], batch_rows: int
) -> list[Outcome]:
    operator = build_operator(name, params)
    assert isinstance(operator, DatasetOperator)
    rows = rows_of(values)
    batches = {f"b{begin:05}": rows.slice(begin, batch_rows) for begin in range(0, rows.num_rows, batch_rows)}
    summaries = [(key, operator.summarize(batch)) for key, batch in batches.items()]
    verdicts = dict(operator.decide(summaries))
    assert list(verdicts) == list(batches)
    outcomes = {key: operator.apply_verdict(batch, verdicts[key]) for key, batch in batches.items()}
    for key, outcome in outcomes.items():
        check_law(operator, batches[key], outcome, key)
    return list(outcomes.values())


def kept(outcomes: Sequence[Outcome]) -> list[str]:
    return [row for outcome in outcomes for row in ids(outcome.kept)]


def rejected(outcomes: Sequence[Outcome]) -> dict[str, dict]:
    rows = [row for outcome in outcomes if outcome.rejected for row in outcome.rejected.to_pylist()]
    return {row["row_id"]: row for row in rows}


def unit(values: Sequence[Sequence[float]]) -> np.ndarray:
    lines = np.asarray(values, np.float64)
    return lines / np.linalg.norm(lines, axis=1, keepdims=True)


def plain_duplicates(values: Sequence[Sequence[float]], threshold: float) -> dict[int, int]:
    """Row by row: the first row that stays and is close enough."""
    lines, stay, gone = unit(values), [], {}
    for row, line in enumerate(lines):
        twin = next((other for other in stay if lines[other] @ line >= threshold), None)
        stay.append(row) if twin is None else gone.update({row: twin})
    return gone


def plain_centers(values: Sequence[Sequence[float]], wanted: int) -> set[int]:
    """The first row, then the farthest from all chosen."""
    lines, chosen = unit(values), [0]
    while len(chosen) < wanted:
        closest = (lines @ lines[chosen].T).max(axis=1)
        closest[chosen] = np.inf
        chosen.append(int(closest.argmin()))
    return set(chosen)


@pytest.mark.parametrize("batch_rows", BATCH_ROWS)
@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.99])
def test_what_is_close_to_an_earlier_row_that_stays_goes(threshold: float, batch_rows: int):
    values = vectors(120)
    outcomes = decided("drop_semantic_duplicates", {"threshold": threshold}, values, batch_rows)
    gone = plain_duplicates(values, threshold)
    assert {row: one["duplicate_of"] for row, one in rejected(outcomes).items()} == {
        f"r{row}": f"r{other}" for row, other in gone.items()
    }
    assert len(gone) > 10 and len(kept(outcomes)) == 120 - len(gone)


def test_more_rows_than_are_compared_at_once_give_the_same(monkeypatch: pytest.MonkeyPatch):
    from dataflow_assets.operators.models import semantic_duplicates

    values = vectors(200, 8)
    expected = kept(decided("drop_semantic_duplicates", {"threshold": 0.7}, values, 50))
    monkeypatch.setattr(semantic_duplicates, "_ROWS_AT_ONCE", 16)
    monkeypatch.setattr(semantic_duplicates, "_COMPARED_AT_ONCE", 7)
    assert kept(decided("drop_semantic_duplicates", {"threshold": 0.7}, values, 50)) == expected


@given(
    st.lists(st.lists(st.sampled_from([-1.0, 0.5, 2.0]), min_size=2, max_size=2), min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_the_threshold_of_one_finds_what_has_the_same_direction(values: list[list[float]], batch_rows: int):
    outcomes = decided("drop_semantic_duplicates", {"threshold": 1.0}, values, batch_rows)
    directions = [tuple(np.round(line, 9)) for line in unit(values)]
    expected = [f"r{row}" for row, one in enumerate(directions) if directions.index(one) == row]
    assert kept(outcomes) == expected


@pytest.mark.parametrize("batch_rows", BATCH_ROWS)
@pytest.mark.parametrize("wanted", [1, 10, 40])
def test_the_farthest_rows_are_chosen_one_after_another(wanted: int, batch_rows: int):
    values = np.random.default_rng(3).normal(size=(60, 6)).tolist()
    outcomes = decided("select_diverse", {"rows": wanted}, values, batch_rows)
    chosen = plain_centers(values, wanted)
    assert kept(outcomes) == [f"r{row}" for row in sorted(chosen)]
    lines = unit(values)
    for name, row in rejected(outcomes).items():
        closest = max(chosen, key=lambda other: float(lines[int(name[1:])] @ lines[other]))
        assert (row["nearest"], row["reject_reason"]) == (f"r{closest}", "not_selected")


def test_no_choice_is_farther_than_twice_the_best_one():
    values = np.random.default_rng(4).normal(size=(12, 2)).tolist()
    lines = unit(values)
    angles = np.arccos(np.clip(lines @ lines.T, -1, 1))
    radius = {three: angles[:, three].min(axis=1).max() for three in itertools.combinations(range(12), 3)}
    chosen = tuple(int(name[1:]) for name in kept(decided("select_diverse", {"rows": 3}, values, 5)))
    assert radius[chosen] <= 2 * min(radius.values()) + 1e-6


@pytest.mark.parametrize(("params", "count"), [({"share": 0.1}, 1), ({"share": 0.3}, 3), ({"rows": 99}, 7)])
def test_so_many_rows_stay(params: dict[str, float], count: int):
    assert len(kept(decided("select_diverse", params, vectors(7), 2))) == count


@pytest.mark.parametrize(("name", "params"), OPERATORS.items())
@pytest.mark.parametrize("batch_rows", BATCH_ROWS)
def test_a_row_without_a_vector_fails_alone(name: str, params: dict[str, object], batch_rows: int):
    bad = [None, "text", [], [0.0, 0.0], [1.0, None], [True, 1.0], {"a": 1}, 3, [10**400, 1]]
    good = [[1e308, 0.0], [0.0, 1e-308], [-1.0, 0.0], [0, -2]]
    outcomes = decided(name, params, [good[0], *bad, *good[1:]], batch_rows)
    failed = [row for outcome in outcomes if outcome.failed for row in outcome.failed.to_pylist()]
    assert [row["error_class"] for row in failed] == ["MissingValue"] + ["WrongType"] * 8
    assert [json.loads(row["embedding"]) if row["embedding"] else None for row in failed] == bad
    assert len(kept(outcomes)) + len(rejected(outcomes)) == 4


@pytest.mark.parametrize(("name", "params"), OPERATORS.items())
def test_vectors_of_two_models_are_refused(name: str, params: dict[str, object]):
    with pytest.raises(RunError, match=r"different lengths: \[1, 2\]"):
        decided(name, params, [[1.0], [1.0, 2.0]], 1)


@pytest.mark.parametrize(("name", "params"), OPERATORS.items())
def test_no_row_and_no_vector_are_fine(name: str, params: dict[str, object]):
    operator = build_operator(name, params)
    assert isinstance(operator, DatasetOperator)
    assert list(operator.decide([])) == []
    empty = operator.summarize(rows_of(["a"]).slice(0, 0))
    assert [verdict.num_rows for _, verdict in operator.decide([("b", empty)])] == [0]
    [outcome] = decided(name, params, [None, None], 2)
    assert outcome.failed is not None and outcome.failed.num_rows == 2


@pytest.mark.parametrize(("name", "params"), OPERATORS.items())
def test_a_column_that_would_be_hidden_is_refused(name: str, params: dict[str, object]):
    with pytest.raises(ConfigError, match="'similarity'"):
        build_operator(name, params).output_schema({"row_id": "string", "similarity": "float64"})


@pytest.mark.parametrize("params", [{}, {"rows": 3, "share": 0.5}, {"share": 0.0}, {"rows": 0}])
def test_how_many_stay_must_be_said_once(params: dict[str, object]):
    with pytest.raises(ConfigError):
        build_operator("select_diverse", params)
