"""The servers and models of other folders of tests."""

from dataflow_assets_tests.fault_server.fixture import fault_server, fault_server_process
from dataflow_assets_tests.operators.models.minilm import minilm_folder

__all__ = ["fault_server", "fault_server_process", "minilm_folder"]
