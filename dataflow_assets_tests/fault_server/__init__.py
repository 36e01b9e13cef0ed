"""A real HTTP server with the OpenAI API, in a process of its own, that misbehaves as it is told."""

from dataflow_assets_tests.fault_server.process import FaultServer
from dataflow_assets_tests.fault_server.records import Asked, Stats, content_hash

__all__ = ["Asked", "FaultServer", "Stats", "content_hash"]
