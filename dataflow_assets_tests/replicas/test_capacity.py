"""What fits a cluster, by the numbers of its nodes."""

import pytest

from dataflow_assets.engines.replicas.capacity import check_capacity, fitting_replicas
from dataflow_assets.engines.replicas.request import ReplicaRequest
from dataflow_assets.errors import ConfigError

TWO_GPUS = {"CPU": 8.0, "GPU": 2.0}
NO_GPU = {"CPU": 2.0}


@pytest.mark.parametrize(
    ("request_", "nodes", "fitting"),
    [
        (ReplicaRequest(8, num_gpus=0.25), [TWO_GPUS], 8),
        (ReplicaRequest(8, num_gpus=0.3), [TWO_GPUS], 6),
        (ReplicaRequest(8, num_gpus=1 / 3), [TWO_GPUS], 6),
        (ReplicaRequest(2, num_gpus=2), [TWO_GPUS, TWO_GPUS], 2),
        (ReplicaRequest(1, num_gpus=3), [TWO_GPUS, TWO_GPUS], 0),
        (ReplicaRequest(9, num_gpus=0.25, num_cpus=2), [TWO_GPUS], 4),
        (ReplicaRequest(3, num_cpus=0.5), [NO_GPU], 4),
        (ReplicaRequest(1, num_gpus=1), [NO_GPU], 0),
        (ReplicaRequest(1, resources={"a100": 1}), [TWO_GPUS, {"a100": 2.0}], 2),
    ],
)
def test_replicas_sit_on_whole_nodes(request_, nodes, fitting) -> None:
    assert fitting_replicas(request_, nodes) == fitting


def test_what_reserves_nothing_always_fits() -> None:
    check_capacity("score", ReplicaRequest(1000), [NO_GPU])


@pytest.mark.parametrize(
    ("request_", "nodes", "words"),
    [
        (
            ReplicaRequest(8, num_gpus=0.5),
            [TWO_GPUS],
            ["8 x 0.5 GPU", "2 GPU, 8 CPU on 1 node", "`replicas: 4`", "`num_gpus_per_replica: 0.25`"],
        ),
        (ReplicaRequest(1, num_gpus=1), [NO_GPU], ["2 CPU, no GPU on 1 node", "none of 1", "use CPUs"]),
        (ReplicaRequest(2, resources={"a100": 1}), [NO_GPU, NO_GPU], ["4 CPU, no GPU, no a100 on 2 nodes"]),
        (
            ReplicaRequest(3, num_cpus=1),
            [NO_GPU],
            ["3 x 1 CPU", "2 of 3 fit", "`replicas: 2`", "autoscaling"],
        ),
    ],
)
def test_a_refusal_says_what_there_is_and_what_would_fit(request_, nodes, words) -> None:
    with pytest.raises(ConfigError) as refused:
        check_capacity("score", request_, nodes)
    assert [word for word in ["step 'score'", *words] if word not in str(refused.value)] == []
