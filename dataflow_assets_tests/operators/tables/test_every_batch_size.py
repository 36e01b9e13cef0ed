"""Dataset operators give the same rows, in the same order, whatever the batch size."""

import pytest

from dataflow_assets_tests.operators.tables.dataset_runs import kept, numbers, outcomes, rejected

ROWS = numbers(60)
STEPS = {
    "limit": ("limit", {"rows": 17, "skip": 4}),
    "sample_rows": ("sample_rows", {"rows": 13, "seed": 4}),
    "stratified": ("sample_rows", {"rows": 13, "by": "lang", "allocation": "equal"}),
    "quota": ("quota", {"by": "lang", "max_rows": 5}),
    "best": ("quota", {"by": "lang", "max_share": 0.2, "best_by": "score"}),
    "sort": ("sort", {"by": ["lang", "score"], "descending": True}),
    "shuffle": ("shuffle", {"seed": 2}),
    "sql_filter": ("sql", {"query": "SELECT * FROM input WHERE n % 3 = 1"}),
    "sql_order": ("sql", {"query": "SELECT row_id, n FROM input ORDER BY score, row_id"}),
    "sql_group": (
        "sql",
        {"query": "SELECT lang, sum(n) s, avg(score) a, list(meta) l FROM input GROUP BY lang"},
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_result_is_the_same_for_every_batch_size(step: str):
    name, params = STEPS[step]
    whole = outcomes(name, params, ROWS, 60)
    rows = whole[0].kept.to_pylist()
    for batch_rows in (1, 7, 59):
        found = outcomes(name, params, ROWS, batch_rows)
        assert [row for outcome in found for row in outcome.kept.to_pylist()] == rows
        assert rejected(found) == rejected(whole)


@pytest.mark.parametrize("step", [step for step in STEPS if step != "sql_group"])
def test_every_row_is_kept_or_rejected(step: str):
    found = outcomes(*STEPS[step], ROWS, 9)
    assert sorted([*kept(found), *rejected(found)]) == sorted(ROWS["row_id"].to_pylist())


@pytest.mark.parametrize("step", STEPS)
def test_a_batch_without_rows_is_no_mistake(step: str):
    name, params = STEPS[step]
    empty = outcomes(name, params, ROWS.slice(0, 1), 1)[0].kept.schema
    assert outcomes(name, params, ROWS.slice(0, 0), 1) == []
    assert empty.names[0] == "row_id"
