from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of, schema_of, table_of
from dataflow_assets.errors import ConfigError, CorruptFile, MissingBatch, RunError
from dataflow_assets.io.formats import EXTENSIONS
from dataflow_assets.io.step_folder import Origin
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.views import query
from dataflow_assets.views.query import open_views
from dataflow_assets_tests.views.hostile_pipeline import ROWS, made, write_pipeline
from dataflow_assets_tests.walk import without_ids


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline's file, run; to be read only."""
    folder = tmp_path_factory.mktemp("odd")
    made(folder)
    return folder / "odd.yaml"


@pytest.mark.parametrize("format", EXTENSIONS)
def test_a_view_has_exactly_the_rows_of_the_step_in_every_format(tmp_path: Path, format: str):
    made(tmp_path, format)
    found = query(tmp_path / "odd.yaml", "FROM source")
    assert without_ids(rows_of(found)) == [
        {name: value for name, value in row.items() if value is not None} for row in ROWS
    ]
    assert schema_of(found)["meta"] == "json"


def test_what_was_rejected_and_what_failed_have_views(odd: Path):
    rejected = query(odd, 'SELECT row_id, reject_reason FROM "long-enough_rejected"')
    assert rows_of(rejected) == [
        {"row_id": "in:1", "reject_reason": "too_short"},
        {"row_id": "in:5", "reject_reason": "too_short"},
    ]
    assert query(odd, "SELECT error_class FROM plain_failed")["error_class"].to_pylist() == ["MissingValue"]
    assert query(odd, "SELECT raw FROM source_rejected")["raw"].to_pylist() == ["{torn"]
    assert query(odd, "SELECT reject_reason, n FROM plain_rejected").num_rows == 0


def test_json_columns_answer_json_functions(odd: Path):
    found = query(odd, "SELECT meta->'день'->>0 AS first FROM source WHERE json_type(meta) = 'OBJECT'")
    assert rows_of(found) == [{"first": "1.5"}]


def test_a_view_may_be_read_twice_in_one_query(odd: Path):
    pairs = query(odd, "SELECT count(*) AS n FROM source a JOIN source b ON a.row_id <= b.row_id")
    assert rows_of(pairs) == [{"n": 15}]


def test_the_order_of_a_query_is_that_of_the_result(odd: Path):
    found = query(odd, "SELECT i FROM range(200_000) r(i), (SELECT 1 FROM source LIMIT 1) ORDER BY i DESC")
    assert found["i"].to_pylist() == list(range(199_999, -1, -1))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM parquet_scan('http://127.0.0.1/x.parquet')",
        "SELECT * FROM odd",
        "COPY source TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "INSTALL httpfs",
        "LOAD json",
        "SET enable_external_access = true",
        "CREATE TABLE mine AS SELECT 1",
        "PRAGMA database_list",
        "SELECT 1; COPY source TO 'out.csv'",
        "EXPORT DATABASE 'out'",
        "",
        "-- nothing",
        "SELEC 1",
    ],
)
def test_a_query_reaches_nothing_but_the_views(
    odd: Path, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        query(odd, sql)
    assert not list(tmp_path.iterdir())


def test_a_column_that_comes_late_is_null_before(tmp_path: Path):
    work = made(tmp_path)
    folder, key = work.folder_of("plain"), work.known_manifest().batches[-1]
    table = table_of(
        {"row_id": ["in:5"], "n": ["many"], "new": [True]}, {"row_id": "string", "n": "string", "new": "bool"}
    )
    folder.commit(folder.prepare(key, Outcome(table), Origin("o", "1", "c", "f", 1, {}, 0.0)))
    found = rows_of(query(tmp_path / "odd.yaml", "SELECT new, n FROM plain ORDER BY row_id"))
    assert (found[0], found[-1]) == ({"new": None, "n": 3}, {"new": True, "n": "many"})


def test_batches_without_a_record_are_not_there(tmp_path: Path):
    work = made(tmp_path)
    folder, key = work.folder_of("source"), work.known_manifest().batches[0]
    folder.record_file(key).unlink()
    assert query(tmp_path / "odd.yaml", "FROM source")["row_id"].to_pylist() == ["in:3", "in:4", "in:5"]


def test_a_step_without_a_batch_is_named(tmp_path: Path):
    work = made(tmp_path)
    for key in work.known_manifest().batches:
        work.folder_of("long-enough").remove(key)
    with pytest.raises(ConfigError, match="without a committed batch: long-enough"):
        query(tmp_path / "odd.yaml", 'FROM "long-enough"')


def test_a_pipeline_that_was_never_run_has_no_views(tmp_path: Path):
    with pytest.raises(MissingBatch, match="was not read"):
        query(write_pipeline(tmp_path), "FROM source")


def test_a_batch_that_changes_under_a_query_ends_it(tmp_path: Path):
    work = made(tmp_path)
    with open_views(work) as views:
        result = views.ask("FROM source")
        work.folder_of("source").file_of(work.known_manifest().batches[1]).write_text("{}\n")
        with pytest.raises(CorruptFile, match="not what was committed"):
            list(result.tables())


def test_an_error_in_the_data_is_a_run_error(odd: Path):
    with pytest.raises(RunError, match="Could not convert string"):
        query(odd, "SELECT CAST(code AS BIGINT) AS c FROM source")


def test_a_column_that_no_file_can_hold_is_refused_by_name(odd: Path):
    with pytest.raises(ConfigError, match=r"column 'b' of the result has the type BLOB"):
        query(odd, "SELECT encode(text) AS b FROM source")


def test_columns_of_one_name_are_refused(odd: Path):
    with pytest.raises(ConfigError, match="two columns 'a'"):
        query(odd, "SELECT 1 AS a, 2 AS a")


def test_a_query_may_use_more_than_its_memory(odd: Path):
    sql = "SELECT count(*) AS n FROM (SELECT DISTINCT i, repeat('x', 200) AS t FROM range(1_000_000) r(i))"
    assert rows_of(query(odd, sql, memory_mb=128)) == [{"n": 1_000_000}]
