"""Dagster on a real PostgreSQL, by the `dagster.yaml` that is deployed."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dataflow_assets.home import HOME_FOLDER
from dataflow_assets_tests.control.slow_project import write_slow
from dataflow_assets_tests.crash.project import write_project
from dataflow_assets_tests.serving.ledger.postgres import server

TREE = Path(__file__).parents[2]
_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of the one database of a server."""
    if importlib.util.find_spec("dagster_postgres") is None:
        reason = "dagster-postgres is not installed; see docs/cluster.md"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with server() as url:
        yield url


@pytest.fixture
def database(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, told to this process and its children as `deploy/dagster.yaml` wants it."""
    import psycopg

    parts, name = urlsplit(postgres), f"dagster_{next(_NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    values = {
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "PASSWORD": parts.password,
        "DB": name,
    }
    for variable, value in values.items():
        monkeypatch.setenv(f"POSTGRES_{variable}", str(value))
    return name


def write_home(folder: Path) -> Path:
    """The deployed `dagster.yaml` as the Dagster home of a folder."""
    home = folder / HOME_FOLDER
    home.mkdir(parents=True)
    shutil.copy(TREE / "deploy" / "dagster.yaml", home)
    return home


@pytest.fixture
def project(tmp_path: Path, database: str) -> Path:
    """The small project of the crash tests, never run; its Dagster is on PostgreSQL."""
    write_project(tmp_path / "project")
    write_home(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def slow(tmp_path: Path, database: str) -> Path:
    """The slow project of the pause tests, never run; its Dagster is on PostgreSQL."""
    folder = write_slow(tmp_path / "project").parent
    write_home(folder)
    return folder


@pytest.fixture
def rows_in_database(database: str) -> Callable[[str], int]:
    """How many rows a table of Dagster has."""
    import psycopg

    def rows(table: str) -> int:
        values = {name: os.environ[f"POSTGRES_{name}"] for name in ("HOST", "PORT", "USER", "PASSWORD")}
        with psycopg.connect(
            host=values["HOST"],
            port=values["PORT"],
            user=values["USER"],
            password=values["PASSWORD"],
            dbname=database,
        ) as connection:
            found = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
            assert found is not None
            return found[0]

    return rows
