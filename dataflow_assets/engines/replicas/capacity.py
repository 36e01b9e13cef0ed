"""What fits a cluster: a request that never will is refused before work, and the message says what would."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dataflow_assets.engines.replicas.request import ReplicaRequest, shown_resources
from dataflow_assets.errors import ConfigError

_SHOWN = ("GPU", "CPU")
_NO_END = 10**9
_ROUNDING = 1e-9
Node = Mapping[str, float]


def check_capacity(step: str, request: ReplicaRequest, nodes: Sequence[Node]) -> None:
    """Raises ConfigError where these nodes, empty, could not hold all replicas at once."""
    fitting = fitting_replicas(request, nodes)
    if fitting >= request.replicas:
        return
    hints = [*_fewer(fitting), *_smaller(request, nodes)]
    raise ConfigError(
        f"step {step!r} asks for {request}, which does not fit: the cluster has {_shown(request, nodes)}, "
        f"where {fitting or 'none'} of {request.replicas} fit{''.join(hints)}. "
        "A cluster that grows by itself: say `autoscaling: true` in the Ray resource"
    )


def fitting_replicas(request: ReplicaRequest, nodes: Sequence[Node]) -> int:
    """How many replicas the nodes hold, each on one node; a fraction of a GPU is never of two GPUs."""
    return sum(_on_node(request.needs, node) for node in nodes)


def _on_node(needs: Mapping[str, float], node: Node) -> int:
    return min(
        (_of_resource(name, need, node.get(name, 0.0)) for name, need in needs.items()), default=_NO_END
    )


def _of_resource(name: str, need: float, there: float) -> int:
    if name == "GPU" and need < 1:
        return math.floor(there) * math.floor(1 / need + _ROUNDING)
    return math.floor(there / need + _ROUNDING)


def _fewer(fitting: int) -> list[str]:
    return [f"; `replicas: {fitting}` would"] if fitting else []


def _smaller(request: ReplicaRequest, nodes: Sequence[Node]) -> list[str]:
    """The largest part of a GPU with which all replicas would fit."""
    if not request.num_gpus:
        return []
    gpus = sum(math.floor(node.get("GPU", 0.0)) for node in nodes)
    if not gpus:
        return ["; without `num_gpus_per_replica` the replicas use CPUs"]
    share = math.floor(1000 / math.ceil(request.replicas / gpus)) / 1000
    if (
        share < request.num_gpus
        and fitting_replicas(replace(request, num_gpus=share), nodes) >= request.replicas
    ):
        return [f"; so would `num_gpus_per_replica: {share:g}`"]
    return []


def _shown(request: ReplicaRequest, nodes: Sequence[Node]) -> str:
    names = dict.fromkeys([*_SHOWN, *request.needs])
    total = {name: sum(node.get(name, 0.0) for node in nodes) for name in names}
    return f"{shown_amounts(total)} on {len(nodes)} node{'s' if len(nodes) != 1 else ''}"


def shown_amounts(total: Mapping[str, float]) -> str:
    """`4 GPU, 2 CPU`, zeros as `no GPU`."""
    none = [f"no {name}" for name, amount in total.items() if not amount]
    some = {name: amount for name, amount in total.items() if amount}
    return ", ".join([*([shown_resources(some)] if some else []), *none])
