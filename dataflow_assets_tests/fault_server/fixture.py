"""The fixtures; a conftest imports both names."""

from collections.abc import Iterator

import pytest

from dataflow_assets_tests.fault_server.process import FaultServer


@pytest.fixture(scope="session")
def fault_server_process() -> Iterator[FaultServer]:
    """One server for all tests of the session."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def fault_server(fault_server_process: FaultServer) -> FaultServer:
    """The server as new: no rules, no records, every request answered with its own content."""
    fault_server_process.reset()
    return fault_server_process
