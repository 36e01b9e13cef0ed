"""The fixtures; a conftest imports the names."""

import uuid
from collections.abc import Iterator

import pytest

from dataflow_assets_tests.clickhouse_server.process import PASSWORD, ClickHouse, needs_chdb


@pytest.fixture(scope="session")
def clickhouse_process() -> Iterator[ClickHouse]:
    """One server for all tests of the session."""
    needs_chdb()
    server = ClickHouse()
    yield server
    server.close()


@pytest.fixture
def clickhouse(clickhouse_process: ClickHouse, monkeypatch: pytest.MonkeyPatch) -> ClickHouse:
    """The server, with its password in the environment and nothing that goes wrong."""
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", PASSWORD)
    clickhouse_process.calm()
    return clickhouse_process


@pytest.fixture
def database(clickhouse: ClickHouse) -> str:
    """An empty database of the server."""
    name = f"d{uuid.uuid4().hex[:12]}"
    clickhouse.ask(f"CREATE DATABASE {name}")
    return name
