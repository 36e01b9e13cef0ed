"""The resource `ray` of a deployment, whether Ray is installed or not."""

import contextlib
import importlib.util
import os
from collections.abc import Collection, Iterable, Iterator, Mapping

import dagster as dg

from dataflow_assets.engines.replicas import ray_connection
from dataflow_assets.engines.replicas.capacity import check_capacity
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.operators.registry import import_object
from dataflow_assets.optional_packages import require
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.replicas import replica_request

RAY_KEY = "ray"
RESOURCE_VARIABLE = "DATAFLOW_RAY"
_PACKAGES = {"ray": "ray", "dagster_ray": "ray"}


def ray_resources(pipelines: Iterable[Pipeline]) -> dict[str, object]:
    """The resource by its key, where a step has replicas; without the extra `ray` it says so when used."""
    if not any(replica_request(step) for pipeline in pipelines for step in pipeline.steps):
        return {}
    return {RAY_KEY: _ray_resource()}


def _ray_resource() -> object:
    """What DATAFLOW_RAY names, else a `RayCluster` with its defaults."""
    named = os.environ.get(RESOURCE_VARIABLE)
    if named:
        return import_object(named)
    if any(importlib.util.find_spec(name) is None for name in _PACKAGES):
        return dg.ResourceDefinition(lambda context: require(_PACKAGES, "a step with replicas"))
    from dataflow_assets.resources.ray_cluster import RayCluster

    return RayCluster()


@contextlib.contextmanager
def refused_if_unfit(
    pipeline: Pipeline, names: Collection[str], resources: Mapping[str, object]
) -> Iterator[None]:
    """Raises ConfigError where a step of these asks for what the cluster will never have.

    Steps whose replicas reserve nothing need no look at the cluster: it is joined when they begin. A
    cluster that comes with the run is looked at by its steps.
    """
    requests = {step.name: replica_request(step) for step in pipeline.steps if step.name in names}
    asking = {name: request for name, request in requests.items() if request is not None and request.needs}
    if not asking:
        yield
        return
    settings = settings_of(resources[RAY_KEY])
    if settings.is_there:
        yield
        return
    with ray_connection.held():
        ray_connection.connect(settings)
        if not settings.autoscaling:
            for name, request in asking.items():
                check_capacity(name, request, ray_connection.nodes())
        yield


def settings_of(resource: object) -> RaySettings:
    """Where the resource is; dagster-ray's own resources have connected the process by themselves."""
    settings = getattr(resource, "settings", None)
    return RaySettings(is_there=True) if settings is None else settings()
