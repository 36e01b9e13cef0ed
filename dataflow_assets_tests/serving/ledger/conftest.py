"""Places for ledgers: a SQLite file, and a database of a real PostgreSQL server."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from dataflow_assets.serving.ledger import Ledger
from dataflow_assets_tests.serving.ledger.postgres import server

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of the one database of a server."""
    with server() as url:
        yield url


@pytest.fixture
def database(postgres: str) -> str:
    """The URL of an empty PostgreSQL schema."""
    import psycopg

    name = f"ledger_{next(_NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return request.getfixturevalue("database")


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    """An empty ledger of each kind."""
    with Ledger(place) as ledger:
        yield ledger
