"""Replicas as Ray actors, on this machine or on a cluster."""

import os
import socket
import sys
import uuid
from collections import Counter
from concurrent.futures import Future
from typing import Any, TypeVar

from dataflow_assets.engines.replicas import ray_connection
from dataflow_assets.engines.replicas.capacity import check_capacity, shown_amounts
from dataflow_assets.engines.replicas.host import ChunkDone, ChunkLost, ReplicaDied, ReplicaInfo
from dataflow_assets.engines.replicas.ray_connection import NAMESPACE, RaySettings
from dataflow_assets.engines.replicas.ray_process import ReplicaProcess
from dataflow_assets.engines.replicas.request import ReplicaRequest, shown_resources
from dataflow_assets.operators.operator import RowOperator

_NAME = "dataflow_assets"
Answer = TypeVar("Answer")


class RayHost:
    """Starts actors for one step. They have names, so that others see who holds what."""

    def __init__(
        self, step: str, operator: RowOperator, request: ReplicaRequest, settings: RaySettings
    ) -> None:
        self._step = step
        self._operator = operator
        self._request = request
        self._settings = settings
        self._is_open = False

    def open(self) -> None:
        """Connects, and raises ConfigError where the request does not fit the cluster."""
        ray_connection.hold()
        self._is_open = True
        ray_connection.connect(self._settings)
        import ray

        if not self._settings.autoscaling:
            check_capacity(self._step, self._request, ray_connection.nodes())
        self._class = ray.remote(ReplicaProcess)
        self._made_of = ray.put(_pickled(self._operator))

    def start(self) -> "RayReplica":
        """Begins an actor; where its resources are held it waits for them."""
        holder = f"{self._step} of process {os.getpid()} on {socket.gethostname()}"
        needs = shown_resources(self._request.needs)
        name = f"{_NAME}|{holder}|{needs}|{uuid.uuid4().hex[:8]}"
        actor = self._class.options(name=name, **self._options()).remote(
            list(sys.path), self._request.num_gpus
        )
        return RayReplica(actor, self._made_of, self._request)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "namespace": NAMESPACE,
            "num_gpus": self._request.num_gpus,
            "num_cpus": self._request.num_cpus,
            "resources": dict(self._request.resources),
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        if self._request.runtime_env is not None:
            options["runtime_env"] = dict(self._request.runtime_env)
        if not self._request.needs:
            options["scheduling_strategy"] = "SPREAD"
        return options

    def close(self) -> None:
        """Gives the connection up."""
        if self._is_open:
            self._is_open = False
            ray_connection.release()


class RayReplica:
    """One actor."""

    def __init__(self, actor: Any, operator: Any, request: ReplicaRequest) -> None:
        self._actor = actor
        self._request = request
        self._placed: Future[ReplicaInfo] = _future(actor.where.remote())
        self.ready: Future[ReplicaInfo] = _future(actor.make.remote(operator))

    def submit(self, rows: bytes) -> "Future[ChunkDone]":
        """Sends the chunk to the actor, which does them in order."""
        return _future(self._actor.do.remote(rows))

    def why_not_ready(self) -> str:
        """Whether it waits for resources, and who holds them, or for its operator."""
        if self._placed.done() and self._placed.exception() is None:
            where = self._placed.result()
            return (
                f"one runs (process {where.pid}, node {where.node[:8]}) but its operator is not made yet; "
                "give it a longer `start_timeout_s`"
            )
        import ray

        free = ray.available_resources()
        shown = shown_amounts({name: free.get(name, 0.0) for name in self._request.needs or ("CPU",)})
        return f"one waits for its resources. Free now: {shown}. Held by: {'; '.join(_holders())}"

    def kill(self) -> None:
        """Ends the actor's process, so that what it reserved is free."""
        import ray

        ray.kill(self._actor)


def _pickled(operator: RowOperator) -> bytes:
    """The operator's class and parameters; a class that cannot be imported there goes with its code."""
    import ray.cloudpickle

    return ray.cloudpickle.dumps((type(operator), operator.params))  # pyright: ignore[reportPrivateImportUsage]


def _future(reference: Any) -> "Future[Any]":
    """The answer to a call as a future of ours."""
    ours: Future[Any] = Future()

    def copy(rays: "Future[Any]") -> None:
        error = rays.exception()
        if error is None:
            ours.set_result(rays.result())
        else:
            ours.set_exception(_translated(error))

    reference.future().add_done_callback(copy)
    return ours


def _translated(error: BaseException) -> BaseException:
    """Ray's error as what the pool knows: the operator's own error, a death, or a lost answer."""
    from ray.exceptions import RayActorError, RayError, RayTaskError

    if isinstance(error, RayTaskError):
        return error.cause if isinstance(error.cause, Exception) else error
    if isinstance(error, RayActorError):
        return ReplicaDied(str(error))
    if isinstance(error, RayError):
        return ChunkLost(str(error))
    return error


def _holders() -> list[str]:
    """Who has replicas on the cluster: `3 x 0.25 GPU by score of process 12 on laptop`."""
    import ray

    actors: list[Any] = ray.util.list_named_actors(all_namespaces=True)
    names = (actor["name"] or "" for actor in actors)
    ours = Counter(tuple(name.split("|")[1:3]) for name in names if name.startswith(f"{_NAME}|"))
    return [f"{count} x {needs} by {holder}" for (holder, needs), count in sorted(ours.items())]
