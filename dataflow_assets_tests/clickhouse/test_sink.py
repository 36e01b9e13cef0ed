import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dataflow_assets.clickhouse.sink import Sent, export_to_clickhouse
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets_tests.clickhouse.shop import is_in, made, numbered
from dataflow_assets_tests.clickhouse_server.process import ClickHouse

OWN = "dataflow_batch LowCardinality(String), dataflow_hash LowCardinality(String), dataflow_version UInt64"
ENGINE = "ENGINE = ReplacingMergeTree(dataflow_version) ORDER BY row_id"


def url(server: ClickHouse, database: str) -> str:
    return f"{server.url}/{database}/rows"


def test_a_step_is_a_table_of_its_own_types(clickhouse: ClickHouse, database: str, tmp_path: Path):
    work = made(tmp_path, numbered(25))
    assert export_to_clickhouse(work, None, url(clickhouse, database)) == Sent(25, 3, 0, 0)
    assert is_in(clickhouse, f"{database}.rows", work)
    described = {name: kind for name, kind, *_ in clickhouse.ask(f"DESCRIBE {database}.rows")}
    assert described == {
        "row_id": "String",
        "n": "Nullable(Int64)",
        "text": "Nullable(String)",
        "even": "Nullable(Bool)",
        "half": "Nullable(Float64)",
        "j": "Nullable(String)",
        "dataflow_batch": "LowCardinality(String)",
        "dataflow_hash": "LowCardinality(String)",
        "dataflow_version": "UInt64",
    }


def test_what_is_there_is_not_sent_again(clickhouse: ClickHouse, database: str, tmp_path: Path):
    work = made(tmp_path, numbered(25))
    export_to_clickhouse(work, None, url(clickhouse, database))
    clickhouse.fault("cut_before")  # no insert would come through
    assert export_to_clickhouse(work, None, url(clickhouse, database)) == Sent(25, 0, 3, 0)
    with pytest.raises(RunError):
        export_to_clickhouse(work, None, url(clickhouse, database) + "2")


def test_a_changed_row_sends_its_batch_and_takes_the_old_one_out(
    clickhouse: ClickHouse, database: str, tmp_path: Path
):
    source = numbered(30)
    export_to_clickhouse(made(tmp_path, source), None, url(clickhouse, database))
    source[14]["text"] = "changed"
    work = made(tmp_path, source)
    assert export_to_clickhouse(work, None, url(clickhouse, database)) == Sent(30, 1, 2, 10)
    assert is_in(clickhouse, f"{database}.rows", work)


def test_rows_that_are_gone_are_deleted(clickhouse: ClickHouse, database: str, tmp_path: Path):
    export_to_clickhouse(made(tmp_path, numbered(30)), None, url(clickhouse, database))
    work = made(tmp_path, numbered(15))
    assert export_to_clickhouse(work, None, url(clickhouse, database)).rows == 15
    assert is_in(clickhouse, f"{database}.rows", work)


def test_batches_that_are_cut_otherwise_leave_no_row_twice(
    clickhouse: ClickHouse, database: str, tmp_path: Path
):
    for batch_rows in (10, 7, None, 10):
        work = made(tmp_path, numbered(30), batch_rows)
        export_to_clickhouse(work, None, url(clickhouse, database))
        assert is_in(clickhouse, f"{database}.rows", work)


@pytest.mark.parametrize("kind", ["cut_before", "cut_after", "half"])
def test_an_insert_that_breaks_off_is_sent_again_without_doubles(
    clickhouse: ClickHouse, database: str, tmp_path: Path, kind: str
):
    work = made(tmp_path, numbered(30))
    clickhouse.fault(kind)
    with pytest.raises(RunError, match="run the same command again"):
        export_to_clickhouse(work, None, url(clickhouse, database))
    assert export_to_clickhouse(work, None, url(clickhouse, database)).rows == 30
    assert is_in(clickhouse, f"{database}.rows", work)


@pytest.mark.parametrize("contains", ["CREATE TABLE", "INSERT", "DELETE FROM"])
def test_a_server_that_dies_after_a_command_is_brought_up_to_date(
    clickhouse: ClickHouse, database: str, tmp_path: Path, contains: str
):
    if contains == "DELETE FROM":
        export_to_clickhouse(made(tmp_path, numbered(12)), None, url(clickhouse, database))
    clickhouse.fault("kill", contains)
    work = made(tmp_path, [{**row, "n": 7} for row in numbered(30)])
    with pytest.raises(RunError):
        export_to_clickhouse(work, None, url(clickhouse, database))
    clickhouse.restart()
    export_to_clickhouse(work, None, url(clickhouse, database))
    assert is_in(clickhouse, f"{database}.rows", work)


def test_rows_of_a_broken_export_do_not_take_older_ones_with_them(
    clickhouse: ClickHouse, database: str, tmp_path: Path
):
    export_to_clickhouse(made(tmp_path, numbered(30)), None, url(clickhouse, database))
    clickhouse.fault("half")
    with pytest.raises(RunError):
        changed = [{**row, "text": "other"} for row in numbered(30)]
        export_to_clickhouse(made(tmp_path, changed), None, url(clickhouse, database))
    clickhouse.ask(f"OPTIMIZE TABLE {database}.rows FINAL")
    work = made(tmp_path, numbered(30))
    export_to_clickhouse(work, None, url(clickhouse, database))
    assert is_in(clickhouse, f"{database}.rows", work)


def test_two_exports_at_once_leave_every_row_once(clickhouse: ClickHouse, database: str, tmp_path: Path):
    work = made(tmp_path, numbered(200))

    def export() -> None:
        with contextlib.suppress(RunError):  # one may delete what the other is sending, which tells it
            export_to_clickhouse(work, None, url(clickhouse, database))

    export()
    clickhouse.ask(f"TRUNCATE TABLE {database}.rows")
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: export(), range(2)))
    export_to_clickhouse(work, None, url(clickhouse, database))
    assert is_in(clickhouse, f"{database}.rows", work)


def test_hostile_values_are_stored_as_they_are(clickhouse: ClickHouse, database: str, tmp_path: Path):
    source = [
        {"a.b `c\\d": "x\x00'\\\n\"", "空": "𝄞 \u202e", "n": -(2**63), "j": {"k": [None, "\ud800"]}},
        {"a.b `c\\d": "", "空": None, "n": 2**63 - 1, "j": "text"},
        {"a.b `c\\d": "x" * 3_000_000, "空": "007", "n": None, "j": None},
    ]
    export_to_clickhouse(made(tmp_path, source), None, url(clickhouse, database))
    found = clickhouse.ask(f"SELECT * EXCEPT row_id FROM {database}.rows ORDER BY row_id")
    assert [row[:4] for row in found] == [
        ("x\x00'\\\n\"", "𝄞 \u202e", -(2**63), '{"k":[null,"\\ud800"]}'),
        ("", None, 2**63 - 1, '"text"'),
        ("x" * 3_000_000, "007", None, None),
    ]


def test_vectors_are_arrays_of_one_length(clickhouse: ClickHouse, database: str, tmp_path: Path):
    vectors = np.random.default_rng(7).random((20, 8)).astype(np.float32)
    source = [{"text": str(n), "embedding": vector.tolist()} for n, vector in enumerate(vectors)]
    export_to_clickhouse(made(tmp_path, source), None, url(clickhouse, database), vectors=["embedding"])
    near = clickhouse.ask(
        f"SELECT text FROM {database}.rows ORDER BY L2Distance(embedding, {vectors[3].tolist()}) LIMIT 4"
    )
    wanted = np.argsort(np.linalg.norm(vectors - vectors[3], axis=1))[:4]
    assert [text for (text,) in near] == [str(n) for n in wanted]
    [(made_as,)] = clickhouse.ask(f"SHOW CREATE TABLE {database}.rows")
    assert "`embedding` Array(Float32)" in made_as
    assert "CHECK length(embedding) = 8" in made_as


@pytest.mark.parametrize("bad", [None, [1.0, "x"], [True, False], {"a": 1}, "text"])
def test_what_is_no_vector_is_named(clickhouse: ClickHouse, database: str, tmp_path: Path, bad: object):
    work = made(tmp_path, [{"v": [1.0, 2.0]}, {"v": bad}])
    with pytest.raises(RunError, match=r"column 'v' of row in:2 holds .*; expected a list of numbers"):
        export_to_clickhouse(work, None, url(clickhouse, database), vectors=["v"])


def test_a_vector_of_another_length_is_refused_by_the_table(
    clickhouse: ClickHouse, database: str, tmp_path: Path
):
    work = made(tmp_path, [{"v": [1.0, 2.0]}, {"v": [1.0]}])
    with pytest.raises(RunError, match="v_length"):
        export_to_clickhouse(work, None, url(clickhouse, database), vectors=["v"])


def test_a_table_that_is_there_is_taken_where_it_fits(clickhouse: ClickHouse, database: str, tmp_path: Path):
    clickhouse.ask(
        f"CREATE TABLE {database}.rows (row_id String, n Int64, text LowCardinality(Nullable(String)), "
        f"even Bool, half Float64, j Array(Float64), more UInt8 DEFAULT 3, {OWN}) {ENGINE}"
    )
    export_to_clickhouse(made(tmp_path, numbered(3)), None, url(clickhouse, database))
    found = clickhouse.ask(f"SELECT n, text, j, more FROM {database}.rows ORDER BY row_id")
    assert found == [(n, f"row {n} 中", [float(n)], 3) for n in range(3)]


def test_a_null_is_not_made_a_default(clickhouse: ClickHouse, database: str, tmp_path: Path):
    clickhouse.ask(f"CREATE TABLE {database}.rows (row_id String, n Int64, {OWN}) {ENGINE}")
    with pytest.raises(RunError):
        export_to_clickhouse(made(tmp_path, [{"n": 1}, {"n": None}]), None, url(clickhouse, database))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (f"(row_id String, n Int64, {OWN}) ENGINE = MergeTree ORDER BY row_id", "has the engine 'MergeTree"),
        (f"(row_id String, n Int64, {OWN}) ENGINE = ReplacingMergeTree ORDER BY row_id", "has the engine"),
        (f"(row_id String, n Int64, {OWN}) ENGINE = ReplacingMergeTree(n) ORDER BY row_id", "has the engine"),
        (
            f"(row_id String, n String, {OWN}) {ENGINE}",
            "the column 'n' of the table is String, the step's needs",
        ),
        (f"(row_id String, {OWN}) {ENGINE}", r"ADD COLUMN `n` Nullable\(Int64\)"),
        (f"(row_id String, n Array(Float32), {OWN}) {ENGINE}", "the column 'n' of the table is Array"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    clickhouse: ClickHouse, database: str, tmp_path: Path, table: str, message: str
):
    clickhouse.ask(f"CREATE TABLE {database}.rows {table}")
    with pytest.raises(ConfigError, match=message):
        export_to_clickhouse(made(tmp_path, [{"n": 1}]), None, url(clickhouse, database))
    assert clickhouse.ask(f"SELECT count() FROM {database}.rows") == [(0,)]


def test_rows_of_others_are_left_alone(clickhouse: ClickHouse, database: str, tmp_path: Path):
    work = made(tmp_path, numbered(3))
    export_to_clickhouse(work, None, url(clickhouse, database))
    clickhouse.ask(f"ALTER TABLE {database}.rows UPDATE dataflow_batch = 'other/step/b' WHERE n = 1")
    with pytest.raises(ConfigError, match="holds rows of 'other/step'"):
        export_to_clickhouse(work, None, url(clickhouse, database))
    assert clickhouse.ask(f"SELECT count() FROM {database}.rows") == [(3,)]


def test_small_batches_go_together_and_large_ones_in_parts(
    clickhouse: ClickHouse, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dataflow_assets.clickhouse.sink._INSERT_ROWS", 35)
    for batch_rows in (10, 1000):
        work = made(tmp_path, numbered(200), batch_rows)
        export_to_clickhouse(work, None, url(clickhouse, database))
        assert is_in(clickhouse, f"{database}.rows", work)
