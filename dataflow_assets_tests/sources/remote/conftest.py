"""What the tests of remote files share: a cache of their own, no waiting between attempts, a web server."""

from collections.abc import Iterator

import pytest

from dataflow_assets.sources.remote import attempts
from dataflow_assets_tests.sources.remote.web_server import WebServer, web_server


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DATAFLOW_SOURCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(attempts, "BASE_S", 0.001)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server
