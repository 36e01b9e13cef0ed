"""Places for corpora: a SQLite file, and databases of a real PostgreSQL and a real MariaDB server."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count

import pytest
from sqlalchemy import delete

from dataflow_assets.corpora.store import Corpora
from dataflow_assets.corpora.tables import CURSORS, DATASETS, LEFT, TURNS
from dataflow_assets_tests.corpora import mariadb
from dataflow_assets_tests.serving.ledger import postgres

_NUMBERS = count()
KINDS = ("sqlite", "postgres", "mariadb")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of the one database of a server."""
    with postgres.server() as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The URL of the one database of a server."""
    with mariadb.server() as url:
        yield url


def postgres_database(url: str) -> str:
    """The URL of an empty schema."""
    import psycopg

    name = f"corpora_{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{url}?options=-csearch_path%3D{name}"


def mariadb_database(url: str) -> str:
    """The URL of an empty database, whose default is not UTF-8."""
    import pymysql
    from sqlalchemy import make_url

    at, name = make_url(url), f"corpora_{next(_NUMBERS)}"
    with pymysql.connect(
        host=at.host, port=at.port or 0, user=at.username, password=at.password or ""
    ) as connection:
        connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
    return url.replace("/corpora", f"/{name}")


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The store of each kind, made when it is first wanted and shared by all tests of the session."""

    @cache
    def store(kind: str) -> str:
        if kind == "sqlite":
            place = str(tmp_path_factory.mktemp("corpora") / "corpora.sqlite")
        elif kind == "postgres":
            place = postgres_database(request.getfixturevalue("postgres_server"))
        else:
            place = mariadb_database(request.getfixturevalue("mariadb_server"))
        Corpora(place, create=True).close()
        return place

    return store


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, stores: Callable[[str], str]) -> str:
    """An empty store of each kind."""
    return emptied(stores(request.param))


def emptied(place: str) -> str:
    """The store, without rows."""
    with Corpora(place) as corpora, corpora.database.engine.begin() as connection:
        for table in (TURNS, DATASETS, CURSORS, LEFT):
            connection.execute(delete(table))
    return place


@pytest.fixture
def corpora(place: str) -> Iterator[Corpora]:
    """The same, opened."""
    with Corpora(place) as corpora:
        yield corpora
