import json
from pathlib import Path

import pytest

from dataflow_assets.clickhouse.sink import export_to_clickhouse
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.clickhouse.shop import made, numbered
from dataflow_assets_tests.clickhouse_server.process import PASSWORD, ClickHouse
from dataflow_assets_tests.crash.command import finish, start
from dataflow_assets_tests.walk import UNCHANGED, Rows, rows, walk

TYPES = {
    "text": ("Nullable(String)", "'中\\n'", "中\n"),
    "low": ("LowCardinality(Nullable(String))", "'x'", "x"),
    "fixed": ("FixedString(4)", "'ab'", "ab"),
    "small": ("Int8", "-128", -128),
    "big": ("UInt64", "18446744073709551615", 2**64 - 1),
    "huge": ("Int256", "123456789012345678901234567890", "123456789012345678901234567890"),
    "f32": ("Float32", "0.5", 0.5),
    "flag": ("Bool", "true", True),
    "decimal": ("Decimal(38, 4)", "1.5", "1.5000"),
    "day": ("Date", "'2024-01-02'", "2024-01-02"),
    "day32": ("Date32", "'1925-01-02'", "1925-01-02"),
    "at": ("DateTime('Asia/Shanghai')", "'2024-01-02 03:04:05'", "2024-01-01T19:04:05+00:00"),
    "fine": (
        "DateTime64(6, 'UTC')",
        "'2024-01-02 03:04:05.123456'",
        "2024-01-02T03:04:05.123456+00:00",
    ),
    "uuid": (
        "UUID",
        "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'",
        "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
    ),
    "kind": ("Enum8('a' = 1, 'b' = 2)", "'b'", "b"),
    "ip4": ("IPv4", "'1.2.3.4'", "1.2.3.4"),
    "ip6": ("IPv6", "'::1'", "::1"),
    "list": ("Array(Nullable(Float32))", "[0.5, NULL]", [0.5, None]),
    "map": ("Map(String, UInt64)", "{'k': 18446744073709551615}", {"k": 2**64 - 1}),
    "tuple": ("Tuple(a Int8, b String)", "(1, 'x')", {"a": 1, "b": "x"}),
    "days": ("Array(Date)", "['2024-01-02']", ["2024-01-02"]),
    "json": ("JSON", '\'{"a": {"b": [1, null]}}\'', {"a": {"b": [1, None]}}),
    "variant": ("Variant(UInt64, String)", "42", 42),
}


def source(server: ClickHouse, database: str, **fields: object) -> dict[str, object]:
    table = "" if "query" in fields else "/rows"
    return {"clickhouse": f"{server.url}/{database}{table}", "key": "k", **fields}


def read(folder: Path, spec: dict[str, object], batch_rows: int = 10) -> PipelineWork:
    fields = {"name": "p", "root": str(folder / "data"), "steps": [UNCHANGED], "batch_rows": batch_rows}
    return walk(Pipeline(source=spec, **fields))  # pyright: ignore[reportArgumentType]


def values(work: PipelineWork) -> Rows:
    return [{name: value for name, value in row.items() if name != "row_id"} for row in rows(work, "source")]


def ids(work: PipelineWork) -> list[object]:
    return [row["row_id"] for row in rows(work, "source")]


def fill(server: ClickHouse, database: str, count: int = 45) -> None:
    """A table whose rows come in no order and in parts."""
    server.ask(f"CREATE TABLE {database}.rows (k UInt32, text String) ENGINE = MergeTree ORDER BY text")
    for odd in (1, 0):
        server.ask(
            f"INSERT INTO {database}.rows SELECT number, concat('row ', toString(number)) FROM "
            f"numbers({count}) WHERE number % 2 = {odd} ORDER BY cityHash64(number)"
        )


def test_every_type_has_an_exact_form(clickhouse: ClickHouse, database: str, tmp_path: Path):
    columns = ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in TYPES.items())
    clickhouse.ask(f"CREATE TABLE {database}.rows (k Int8, {columns}) ENGINE = MergeTree ORDER BY k")
    literals = ", ".join(literal for _, literal, _ in TYPES.values())
    clickhouse.ask(f"INSERT INTO {database}.rows VALUES (1, {literals})")
    [row] = values(read(tmp_path, source(clickhouse, database)))
    assert row == {"k": 1, **{name: value for name, (_, _, value) in TYPES.items()}}


def test_rows_come_in_the_order_of_the_key_whatever_the_batches(
    clickhouse: ClickHouse, database: str, tmp_path: Path
):
    fill(clickhouse, database)
    for range_rows in (7, 1000):
        work = read(tmp_path / str(range_rows), source(clickhouse, database, range_rows=range_rows))
        assert values(work) == [{"k": k, "text": f"row {k}"} for k in range(45)]
        assert ids(work)[30] == f"rows_{30 // range_rows:05d}:30"


def test_only_ranges_that_changed_are_read_again(clickhouse: ClickHouse, database: str, tmp_path: Path):
    fill(clickhouse, database)
    spec = source(clickhouse, database, range_rows=20)
    before = generations(read(tmp_path, spec))
    clickhouse.ask(f"INSERT INTO {database}.rows VALUES (100, 'new')")
    after = generations(read(tmp_path, spec))
    assert {key for key in after if after[key] != before.get(key)} == {"rows_00002_b00000"}
    clickhouse.ask(f"ALTER TABLE {database}.rows DELETE WHERE k = 25 SETTINGS mutations_sync = 2")
    clickhouse.ask(f"INSERT INTO {database}.rows VALUES (25, 'changed')")
    last = generations(read(tmp_path, spec))
    assert {key for key in last if last[key] != after[key]} == {"rows_00001_b00000"}


def generations(work: PipelineWork) -> dict[str, float]:
    folder = work.folder_of("source")
    found = {key: folder.record(key) for key in work.known_manifest().batches}
    return {key: record.started_at for key, record in found.items() if record is not None}


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("String", ["", "a:b/c %", "x\ty\\n'\n", "z\x00", "中"]),
        ("Int64", [-(2**63), -1, 0, 2**63 - 1]),
        ("UInt64", [0, 2**63, 2**64 - 1]),
        ("UUID", ["00000000-0000-0000-0000-000000000001", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"]),
        ("Date", ["1999-12-31", "2024-01-02"]),
        ("DateTime('Europe/Berlin')", [1729987200, 1729990800, 1729994400]),  # the hour that comes twice
        ("DateTime64(3, 'Europe/Berlin')", [1729987200, 1729990800, 1729994400]),
        ("LowCardinality(String)", ["a", "b"]),
        ("FixedString(3)", ["ab", "abc"]),
    ],
)
def test_a_key_of_any_ordered_type_makes_ranges(
    clickhouse: ClickHouse, database: str, tmp_path: Path, kind: str, keys: list
):
    clickhouse.ask(f"CREATE TABLE {database}.rows (k {kind}, n Int8) ENGINE = MergeTree ORDER BY n")
    for n, key in reversed(list(enumerate(keys))):
        told = json.dumps({"k": key, "n": n}, ensure_ascii=False)
        clickhouse.ask(f"INSERT INTO {database}.rows FORMAT JSONEachRow {told}")
    work = read(tmp_path, source(clickhouse, database, range_rows=1))
    assert [row["n"] for row in rows(work, "source")] == list(range(len(keys)))
    assert len(set(ids(work))) == len(keys)


def test_a_query_is_read_as_it_says(clickhouse: ClickHouse, database: str, tmp_path: Path):
    clickhouse.ask(f"CREATE TABLE {database}.rows (k Int8, v Int8) ENGINE = ReplacingMergeTree(v) ORDER BY k")
    for version in (1, 2):
        clickhouse.ask(f"INSERT INTO {database}.rows SELECT number, {version} FROM numbers(3)")
    with pytest.raises(SourceError, match=r"the key has 3 values in 6 rows; .* say FINAL in `source.query`"):
        read(tmp_path, source(clickhouse, database))
    query = "SELECT k, v AS version FROM rows FINAL WHERE k > 0 -- the newest;"
    work = read(tmp_path, source(clickhouse, database, query=query))
    assert values(work) == [{"k": 1, "version": 2}, {"k": 2, "version": 2}]


def test_rows_that_no_column_can_hold_are_set_aside(clickhouse: ClickHouse, database: str, tmp_path: Path):
    clickhouse.ask(f"CREATE TABLE {database}.rows (k Int8, s String, l Array(Float64)) ENGINE = Memory")
    clickhouse.ask(f"INSERT INTO {database}.rows VALUES (1, unhex('ff'), []), (2, 'x', [nan]), (3, 'y', [1])")
    work = read(tmp_path, source(clickhouse, database))
    assert values(work) == [{"k": 3, "s": "y", "l": [1.0]}]
    reasons = [row["reject_detail"] for row in rows(work, "source", "rejected")]
    assert reasons == [
        "invalid UTF-8: column 's'",
        "NaN or infinity inside a nested value has no JSON form: column 'l'",
    ]


@pytest.mark.parametrize(
    ("table", "spec", "message"),
    [
        ("(k Int8)", {}, "has no rows"),
        ("(k Nullable(Int8))", {"fill": "(1), (NULL)"}, "is null in 1 of 2 rows"),
        ("(k Int8)", {"fill": "(1), (1)"}, "has 1 values in 2 rows"),
        ("(k Float64)", {"fill": "(1)"}, "has the type Float64; expected text, an integer"),
        ("(n Int8)", {"fill": "(1)"}, "there is no column 'k'; found n"),
        ("(k Int8)", {"fill": "(1)", "query": "SELECT nope FROM rows"}, "nope"),
        ("(k Int8)", {"fill": "(1)", "query": "DROP TABLE rows"}, "Syntax error"),
        ("(k Int8)", {"fill": "(1)", "columns": ["nope"]}, "there is no column 'nope'"),
    ],
)
def test_a_source_that_cannot_be_read_is_told(
    clickhouse: ClickHouse, database: str, tmp_path: Path, table: str, spec: dict, message: str
):
    clickhouse.ask(f"CREATE TABLE {database}.rows {table} ENGINE = MergeTree ORDER BY tuple()")
    if "fill" in spec:
        clickhouse.ask(f"INSERT INTO {database}.rows VALUES {spec['fill']}")
    fields = {name: value for name, value in spec.items() if name != "fill"}
    with pytest.raises(SourceError, match=message):
        read(tmp_path, source(clickhouse, database, **fields))


def test_a_password_is_in_no_message_and_no_file(clickhouse: ClickHouse, database: str, tmp_path: Path):
    fill(clickhouse, database, 3)
    address = clickhouse.url.replace("@", ":pa55-w0rd%2F%40%3A%25@") + f"/{database}/rows"
    work = read(tmp_path, {"clickhouse": address, "key": "k"})
    with pytest.raises(ConfigError, match="check user, password and grants") as error:
        read(tmp_path / "b", {"clickhouse": address.replace("pa55", "wrong"), "key": "k"})
    files = [path.read_bytes() for path in work.layout.root.rglob("*") if path.is_file()]
    texts = [str(error.value), repr(work.pipeline), *(file.decode("utf-8", "replace") for file in files)]
    assert not [text for text in texts if "w0rd" in text or PASSWORD in text]


def test_what_was_exported_can_be_read(clickhouse: ClickHouse, database: str, tmp_path: Path):
    shop = made(tmp_path / "shop", numbered(25))
    export_to_clickhouse(shop, None, f"{clickhouse.url}/{database}/rows")
    columns = ["n", "text", "even", "half", "j"]
    work = read(tmp_path, source(clickhouse, database, key="n", columns=columns))
    assert values(work) == [{**row, "j": json.dumps(row["j"])} for row in numbered(25)]


@pytest.mark.slow
def test_a_reading_that_is_killed_goes_on(clickhouse: ClickHouse, database: str, tmp_path: Path):
    fill(clickhouse, database)
    spec = json.dumps(source(clickhouse, database, range_rows=20))
    file = tmp_path / "four.yaml"
    file.write_text(f"name: p\nsource: {spec}\nbatch_rows: 8\nroot: data\nsteps: {json.dumps([UNCHANGED])}\n")
    assert finish(start(tmp_path, "run", "four.yaml", kill="record_renamed:4")).code == -9
    assert finish(start(tmp_path, "run", "four.yaml")).code == 0
    work = PipelineWork(load_pipeline(file))
    assert values(work) == [{"k": k, "text": f"row {k}"} for k in range(45)]


def test_a_server_that_goes_away_is_told_and_the_reading_goes_on(
    clickhouse: ClickHouse, database: str, tmp_path: Path
):
    fill(clickhouse, database)
    spec = source(clickhouse, database, range_rows=20)
    for skip in (2, 0, 0, 0):  # clickhouse-connect asks again twice
        clickhouse.fault("cut_before", "AS k, source_rows", skip)
    with pytest.raises(SourceError, match="or bring the server back"):
        read(tmp_path, spec)
    assert len(values(read(tmp_path, spec))) == 45
