"""The servers for the tests of whole LLM steps."""

from dataflow_assets_tests.fault_server.fixture import fault_server, fault_server_process
from dataflow_assets_tests.serving.smollm2 import smollm2_folder, smollm2_server

__all__ = ["fault_server", "fault_server_process", "smollm2_folder", "smollm2_server"]
