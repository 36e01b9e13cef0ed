"""The rows of a query as a source, from three databases: exact, in order of the key, fixed at the start."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, make_url, text

from dataflow_assets.batch import ROW_ID, conform, rows_of, widen_schema
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.sources.columns import types_of
from dataflow_assets.sources.ingest import final_schema
from dataflow_assets.sources.piece import NOTHING_KNOWN, Piece
from dataflow_assets.sources.records import read_chunks
from dataflow_assets.sources.sql.query_pieces import sql_pieces
from dataflow_assets.sources.sql.spec import SqlSource
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.corpora.conftest import KINDS, mariadb_database, postgres_database
from dataflow_assets_tests.serving.ledger.postgres import PASSWORD

QUERY = "SELECT id, name, CASE WHEN id % 2 = 0 THEN 'a:b%' END AS odd FROM people"
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "sqlite": "sqlite"}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with 100 people, of each kind."""
    if request.param == "sqlite":
        place = f"sqlite:///{tmp_path}/people.db"
    elif request.param == "postgres":
        place = postgres_database(request.getfixturevalue("postgres_server"))
    else:
        place = mariadb_database(request.getfixturevalue("mariadb_server"))
    with changing(place) as connection:
        connection.execute(text("CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR(20))"))
        people = [{"id": 3 * number, "name": f"n{number}"} for number in range(100, 0, -1)]
        connection.execute(text("INSERT INTO people VALUES (:id, :name)"), people)
    return place


@contextlib.contextmanager
def changing(url: str) -> Iterator[Connection]:
    """A transaction on the database."""
    at = make_url(url)
    engine = create_engine(at.set(drivername=_DRIVERS[at.drivername]))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def pieces(url: str, query: str = QUERY, key: str = "id", **fields: object) -> Sequence[Piece]:
    """The ranges of the query as they are now."""
    spec = SqlSource(sql=url, query=query, key=key, **fields)  # type: ignore[arg-type]
    return sql_pieces(spec, Path.cwd(), NOTHING_KNOWN).pieces


def rows(found: Sequence[Piece]) -> list[dict[str, object]]:
    """All rows of these pieces."""
    spec = SqlSource(sql="x", query="x", key="x")  # type: ignore[arg-type]
    tables = [chunk.table for piece in found for chunk in read_chunks(piece, spec)]
    columns = final_schema(widen_schema(map(types_of, tables)))
    del columns[ROW_ID]
    return [row for table in tables for row in rows_of(conform(table, columns))]


def test_rows_come_in_the_order_of_the_key(url: str) -> None:
    found = rows(pieces(url, range_rows=7))
    assert [row["id"] for row in found] == list(range(3, 301, 3))
    assert found[1] == {"id": 6, "name": "n2", "odd": "a:b%"}


@pytest.mark.parametrize("chunk_bytes", [1, 2**20])
def test_a_number_and_the_text_of_it_are_two_rows(tmp_path: Path, chunk_bytes: int) -> None:
    url = f"sqlite:///{tmp_path}/mixed.db"
    with changing(url) as connection:
        connection.execute(text("CREATE TABLE mixed (k)"))
        connection.execute(text("INSERT INTO mixed VALUES (1), ('1'), (2.5), ('b')"))
    [piece] = pieces(url, "SELECT k FROM mixed", key="k")
    columns = [chunk.row_ids for chunk in piece.chunks(chunk_bytes)]
    ids = [row_id for column in columns if column is not None for row_id in column.to_pylist()]
    assert ids == [f"{piece.slug}:{key}" for key in ("1", "2.5", "'1'", "b")]


def test_a_query_may_end_with_a_comment(url: str) -> None:
    assert len(rows(pieces(url, "SELECT id FROM people -- of all teams"))) == 100


def test_row_ids_are_made_of_the_key(url: str) -> None:
    first, *_ = pieces(url, "SELECT name AS who, id FROM people", "who", range_rows=4)
    (chunk,) = read_chunks(first, SqlSource(sql="x", query="x", key="x"))  # type: ignore[arg-type]
    assert chunk.row_ids is not None
    assert [id.rpartition(":")[2] for id in chunk.row_ids.to_pylist()] == ["n1", "n10", "n100", "n11"]


def test_a_row_that_comes_later_is_not_read(url: str) -> None:
    found = pieces(url)
    with changing(url) as connection:
        connection.execute(text("INSERT INTO people VALUES (1000, 'late')"))
    assert len(rows(found)) == 100


def test_a_change_is_seen_in_its_range_alone(url: str) -> None:
    before = [piece.states() for piece in pieces(url, range_rows=25)]
    with changing(url) as connection:
        connection.execute(text("UPDATE people SET name = 'new' WHERE id = 90"))
    after = pieces(url, range_rows=25)
    assert [piece.is_still(state) for piece, state in zip(after, before, strict=True)] == [
        True,
        False,
        True,
        True,
    ]


def test_a_change_while_it_is_read_is_refused(url: str) -> None:
    (piece,) = pieces(url)
    before = piece.states()
    with changing(url) as connection:
        connection.execute(text("DELETE FROM people WHERE id = 3"))
    assert len(rows([piece])) == 99
    with pytest.raises(SourceError, match="changed while it was read"):
        piece.check_same(before)


def test_with_a_column_of_changes_no_row_is_read_to_see_one(url: str) -> None:
    (piece,) = pieces(url, "SELECT id, name, id AS version FROM people", updated="version")
    (state,) = piece.states().values()
    assert state.facts == {"rows": 100, "newest": "300"}  # type: ignore[union-attr]


BAD: dict[str, tuple[str, str, str]] = {
    "nulls": (
        "SELECT id, CASE WHEN id > 9 THEN id END AS k FROM people",
        "k",
        "key 'k' .* is null in 3 of 100",
    ),
    "twice": (
        "SELECT id, id % 7 AS k FROM people",
        "k",
        "'k' .* 7 values in 100 rows, 0 for one more than once",
    ),
    "missing": (QUERY, "nobody", "no column 'nobody'; found id, name, odd"),
    "no table": ("SELECT * FROM nothing", "id", "cannot be read: .*nothing.*; correct `source.query`"),
    "no rows": ("SELECT * FROM people WHERE id < 0", "id", "has no rows"),
    "a write": ("DELETE FROM people", "id", "cannot be read"),
    "two statements": ("SELECT 1 AS id; DELETE FROM people", "id", "cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_query_is_refused_by_name_and_changes_nothing(url: str, case: str) -> None:
    query, key, reason = BAD[case]
    with pytest.raises(SourceError, match=reason):
        pieces(url, query, key)
    assert len(rows(pieces(url))) == 100


@pytest.mark.parametrize("function", ["setval('s', 9)", "nextval('s')"])
def test_a_function_that_writes_is_refused(postgres_server: str, function: str) -> None:
    url = postgres_database(postgres_server)
    with changing(url) as connection:
        connection.execute(text("CREATE SEQUENCE s"))
    with pytest.raises(SourceError, match="read-only transaction"):
        pieces(url, f"SELECT {function} AS id")


TYPES: dict[str, Callable[[], tuple[str, dict[str, object]]]] = {
    "postgres": lambda: (
        "SELECT 1 AS id, 12345678901234567890.10::numeric AS amount, true AS yes, null::int AS nothing, "
        "'2024-01-05 10:00:00+02'::timestamptz AS instant, date '2024-01-05' AS day, 2::bigint AS big, "
        '\'{"b": [1, 2.5], "a": null}\'::jsonb AS doc, array[1, 2] AS list, '
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS uid, 0.1::float8 AS real_, interval '90 s' AS span",
        {
            "amount": "12345678901234567890.10",
            "yes": True,
            "nothing": None,
            "instant": "2024-01-05T08:00:00.000000+00:00",
            "day": "2024-01-05",
            "big": 2,
            "doc": {"a": None, "b": [1, 2.5]},
            "list": [1, 2],
            "uid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "real_": 0.1,
            "span": "PT90.000000S",
        },
    ),
    "mariadb": lambda: (
        "SELECT 1 AS id, CAST(12345678901234567890.10 AS DECIMAL(30, 2)) AS amount, null AS nothing, "
        "TIMESTAMP '2024-01-05 10:00:00' AS moment, DATE '2024-01-05' AS day, 18446744073709551615 AS big, "
        "CAST(0.1 AS DOUBLE) AS real_, '😀' AS face",
        {
            "amount": "12345678901234567890.10",
            "nothing": None,
            "moment": "2024-01-05T10:00:00.000000",
            "day": "2024-01-05",
            "big": 18446744073709551615,
            "real_": 0.1,
            "face": "😀",
        },
    ),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_are_exact(request: pytest.FixtureRequest, kind: str) -> None:
    server = request.getfixturevalue(f"{kind}_server")
    query, expected = TYPES[kind]()
    (row,) = rows(pieces(server, query))
    assert row == {"id": 1, **expected}


def test_a_pipeline_reads_a_query_and_tells_nobody_the_password(
    postgres_server: str, tmp_path: Path, command_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEOPLE", postgres_server)
    (tmp_path / "people.yaml").write_text(
        "name: people\nsource: {sql: '${PEOPLE}', query: 'SELECT generate_series(1, 100) AS id', key: id, "
        "range_rows: 40}\nbatch_rows: 30\nsteps:\n  - {name: few, type: limit, params: {rows: 70}}\n"
    )
    assert "source: 5 batches, 100 rows" in command_here(tmp_path, "run", "people.yaml").out
    assert "source:" not in command_here(tmp_path, "run", "people.yaml").out
    files = [path for path in (tmp_path / "dataflow_data").rglob("*") if path.is_file()]
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no SQLite file .*none\.db"):
        pieces(f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("url", ["nothing", "oracle+none://a/b"])
def test_a_url_without_driver_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"source\.sql"):
        pieces(url)
