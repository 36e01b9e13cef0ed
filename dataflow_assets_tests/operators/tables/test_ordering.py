import math

import pyarrow as pa
import pytest

from dataflow_assets.batch import schema_of
from dataflow_assets.errors import ConfigError, ConservationError, StorageError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.regrouping import Regrouped, RegroupingOperator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table
from dataflow_assets_tests.operators.tables.dataset_runs import kept, numbers, outcomes

ODD = table(
    f=[2.0, None, math.nan, -1.0, 2.0], text=["b", "é", "B", "", "中"], ok=[True, False, None, True, False]
)


@pytest.mark.parametrize(
    ("params", "order"),
    [
        ({"by": ["f"]}, ["r3", "r0", "r4", "r2", "r1"]),
        ({"by": ["f"], "descending": True}, ["r0", "r4", "r3", "r2", "r1"]),
        ({"by": ["text"]}, ["r3", "r2", "r0", "r1", "r4"]),
        ({"by": ["ok", "text"]}, ["r1", "r4", "r3", "r0", "r2"]),
    ],
)
def test_rows_are_sorted_and_what_has_no_order_comes_last(params: dict, order: list[str]):
    assert ids(applied("sort_batch", ODD, params).kept) == order
    assert kept(outcomes("sort", params, ODD, 2)) == order


def test_sort_batch_keeps_rows_in_their_batch():
    rows = table(n=[3, 1, 2, 0])
    assert ids(applied("sort_batch", rows.slice(0, 2), {"by": ["n"]}).kept) == ["r1", "r0"]


@pytest.mark.parametrize("name", ["sort", "sort_batch"])
def test_a_column_of_json_has_no_order(name: str):
    operator = build_operator(name, {"by": ["meta"]})
    with pytest.raises(ConfigError, match="cannot sort by 'meta'"):
        operator.output_schema(schema_of(numbers(4)))


@pytest.mark.parametrize(("by", "message"), [([], "at least 1 item"), (["a", "a"], "named twice")])
def test_wrong_columns_are_refused_at_load(by: list[str], message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("sort", {"by": by})


def test_a_shuffle_moves_rows_over_the_batches_and_changes_no_value():
    rows = numbers(200)
    found = outcomes("shuffle", {"seed": 1}, rows, 20)
    assert all(outcome.kept.num_rows == 20 for outcome in found)
    origins = {int(row_id[1:]) // 20 for row_id in ids(found[0].kept)}
    assert len(origins) > 4
    by_id = {row["row_id"]: row for row in rows.to_pylist()}
    assert all(by_id[row["row_id"]] == row for outcome in found for row in outcome.kept.to_pylist())


def test_another_seed_is_another_order():
    first, second = (kept(outcomes("shuffle", {"seed": seed}, numbers(30), 30)) for seed in (1, 2))
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_shuffle_has_no_bias_that_one_sees():
    order = kept(outcomes("shuffle", {}, numbers(2000), 500))
    mean = sum(int(row_id[1:]) for row_id in order[:500]) / 500
    assert 900 < mean < 1100


def test_a_full_disk_is_told_as_such(monkeypatch: pytest.MonkeyPatch):
    new_file = pa.ipc.new_file
    monkeypatch.setattr(pa.ipc, "new_file", lambda path, schema: new_file("/dev/full", schema))
    with pytest.raises(StorageError, match=r"the rows cannot be put aside.*No space left.*TMPDIR"):
        outcomes("shuffle", {}, numbers(9), 4)


class _Loses(RegroupingOperator):
    """An operator that breaks the law."""

    name = "loses"

    def regroup(self, batches):
        for key, rows in batches:
            yield key, Regrouped(rows.slice(1), rows["row_id"].slice(0, 0))


def test_an_operator_that_loses_rows_never_commits_its_last_batch():
    batches = [("a", numbers(3)), ("b", numbers(3))]
    verdicts = iter(_Loses().decide(batches))
    assert next(verdicts)[0] == "a"
    with pytest.raises(ConservationError, match="was given 6 rows and gave 4"):
        next(verdicts)
