"""Places for corpora: a SQLite file, and databases of a real PostgreSQL and a real MariaDB server."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from dataflow_assets.corpora.store import Corpora
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


def _postgres_database(url: str) -> str:
    import psycopg

    name = f"corpora_{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{url}?options=-csearch_path%3D{name}"


def _mariadb_database(url: str) -> str:
    import pymysql
    from sqlalchemy import make_url

    at, name = make_url(url), f"corpora_{next(_NUMBERS)}"
    with pymysql.connect(
        host=at.host, port=at.port or 0, user=at.username, password=at.password or ""
    ) as connection:
        connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
    return url.replace("/corpora", f"/{name}")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where corpora can be made, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "corpora.sqlite")
    if request.param == "postgres":
        return _postgres_database(request.getfixturevalue("postgres_server"))
    return _mariadb_database(request.getfixturevalue("mariadb_server"))


@pytest.fixture
def corpora(place: str) -> Iterator[Corpora]:
    """An empty store of each kind."""
    with Corpora(place, create=True) as corpora:
        yield corpora
