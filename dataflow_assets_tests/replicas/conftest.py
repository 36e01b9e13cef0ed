"""One small Ray cluster for all tests of a pytest process that need a real one; its GPUs are only counted.

Each process of pytest-xdist has its own: the tests look at what is free.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from dataflow_assets.engines.replicas import ray_connection
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets_tests.operators.models.tiny_models import tiny_classifier, tiny_gpt2

__all__ = ["tiny_classifier", "tiny_gpt2"]
GPUS, CPUS, SPOTS = 4, 2, 1
STORE_BYTES = 80 * 2**20


@pytest.fixture(scope="session")
def ray_nodes() -> Iterator[Any]:
    """The cluster, to which nodes can be added."""
    from ray.cluster_utils import Cluster

    head = {
        "num_cpus": CPUS,
        "num_gpus": GPUS,
        "resources": {"spot": SPOTS},
        "object_store_memory": STORE_BYTES,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="session")
def ray_cluster(ray_nodes: Any) -> Iterator[RaySettings]:
    """How this process is connected to it, from the first test to the last."""
    settings = RaySettings(ray_nodes.address)
    ray_connection.hold()
    try:
        ray_connection.connect(settings)
        yield settings
    finally:
        ray_connection.release()
