import importlib.util

import pytest

from dataflow_assets.batch import rows_of, schema_of
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import table
from dataflow_assets_tests.operators.tables.dataset_runs import kept, numbers, outcomes, rejected


def queried(query: str, rows=None, batch_rows: int = 4) -> list:
    return outcomes("sql", {"query": query}, numbers(10) if rows is None else rows, batch_rows)


def test_rows_keep_their_ids_and_the_others_are_rejected():
    found = queried("SELECT n, row_id, meta FROM input WHERE n >= 7 ORDER BY n DESC -- the last")
    assert kept(found) == ["r9", "r8", "r7"]
    assert found[0].kept.column_names == ["row_id", "n", "meta"]
    assert [outcome.kept.num_rows for outcome in found] == [1, 1, 1]
    assert rejected(found) == {f"r{n}": "not_in_result" for n in range(7)}


def test_values_of_all_types_come_back_as_they_were():
    rows = table(
        s=["中\x00'\"", ""], n=[2**63 - 1, None], f=[0.1, None], b=[True, False], j=[{"ключ": [1.5, None]}, 7]
    )
    [found] = queried("FROM input;", rows)
    assert found.kept == rows


def test_groups_are_new_rows():
    found = queried(
        "SELECT lang, count(*) AS rows, sum(n) AS total, list(n) AS all_n FROM input GROUP BY lang"
    )
    assert [row for outcome in found for row in rows_of(outcome.kept)] == [
        {"row_id": "sql:1", "lang": "en", "rows": 4, "total": 18, "all_n": [0, 3, 6, 9]},
        {"row_id": "sql:2", "lang": "zh", "rows": 6, "total": 27, "all_n": [1, 2, 4, 5, 7, 8]},
    ]
    assert rejected(found) == {}
    assert schema_of(found[0].kept)["total"] == "int64"


def test_lists_of_decimals_are_json():
    [found] = queried("SELECT row_id, [1.5, 2.25] AS l, {'d': 0.1} AS s FROM input", table(n=[1]))
    assert rows_of(found.kept) == [{"row_id": "r0", "l": [1.5, 2.25], "s": {"d": 0.1}}]


def test_an_empty_result_is_a_result():
    found = queried("SELECT * FROM input WHERE false")
    assert kept(found) == []
    assert len(rejected(found)) == 10


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT nope FROM input", "nope"),
        ("SELEC 1", "Parser Error"),
        ("SELECT 1; SELECT 2", "no single SELECT"),
        ("DROP TABLE input", "no single SELECT"),
        ("COPY input TO 'out.csv'", "no single SELECT"),
        ("SELECT row_id, n, n + 1 AS N FROM input", "two columns 'n'"),
        ("SELECT row_id, n::VARCHAR::BLOB AS raw FROM input", "'raw' of the result has the type BLOB"),
        ("SELECT n AS row_id FROM input", "'row_id' of the result has the type BIGINT"),
        ("SELECT * FROM read_text('/etc/hostname')", "disabled by configuration"),
        ("SELECT * FROM '/etc/hostname'", "does not exist"),
        ("SELECT * FROM glob('/*')", "disabled by configuration"),
    ],
)
def test_a_mistake_is_told_before_any_work(query: str, message: str):
    operator = build_operator("sql", {"query": query})
    with pytest.raises(ConfigError, match=message):
        operator.output_schema(schema_of(numbers(2)))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT row_id FROM input, range(2)", "2 rows with the 'row_id' 'r0', of which 2 came in"),
        ("SELECT 'x' AS row_id FROM input LIMIT 1", "'x', of which 0 came in"),
        ("SELECT row_id, CAST(lang AS INT) AS n FROM input", "the query failed: Conversion Error"),
        ("SELECT row_id, ['nan'::DOUBLE] AS l FROM input", "column 'l' of the result: JSON has no NaN"),
        ("SELECT sum(n::HUGEINT * 9223372036854775807) AS n FROM input", "the query failed"),
    ],
)
def test_a_query_that_fails_on_the_data_ends_the_run(query: str, message: str):
    with pytest.raises(RunError, match=message):
        queried(query)


def test_a_variable_of_this_process_is_no_table():
    secret = numbers(1)
    operator = build_operator("sql", {"query": "SELECT * FROM secret"})
    with pytest.raises(ConfigError, match="secret does not exist"):
        operator.output_schema(schema_of(secret))


@pytest.mark.slow
def test_more_rows_than_its_memory_are_sorted_on_disk():
    rows = table(n=list(range(240_000)), text=[f"{n * 7919 % 240_000:06}" * 100 for n in range(240_000)])
    operator = build_operator("sql", {"query": "SELECT row_id FROM input ORDER BY text", "memory_mb": 128})
    batches = [(str(begin), rows.slice(begin, 60_000)) for begin in range(0, 240_000, 60_000)]
    found = [table["row_id"][0].as_py() for _, table in operator.decide(batches)]  # pyright: ignore[reportAttributeAccessIssue]
    assert found[0] == "r0"


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'dataflow_assets\[sql\]'"):
        build_operator("sql", {"query": "FROM input"})
