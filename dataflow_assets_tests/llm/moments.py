"""Waits for a moment of a running command by what the server or the command has seen of it."""

import time

from dataflow_assets_tests.crash.command import Running
from dataflow_assets_tests.fault_server import FaultServer

LIMIT_S = 120.0


def wait_for_requests(server: FaultServer, count: int, process: Running) -> bool:
    """Waits until the server was asked so often; False where the command ended before."""
    end = time.monotonic() + LIMIT_S
    while server.stats().count < count:
        if process.poll() is not None:
            return False
        assert time.monotonic() < end, f"{server.stats().count} requests, expected {count}: {process.texts()}"
        time.sleep(0.02)
    return True
