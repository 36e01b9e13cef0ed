"""The Ray that a deployment's steps with replicas run on, as a Dagster resource."""

import contextlib
from collections.abc import Generator
from typing import Any

import dagster as dg
from dagster_ray import Lifecycle, RayResource
from dagster_ray.types import AnyDagsterContext
from pydantic import Field

from dataflow_assets.engines.replicas import ray_connection
from dataflow_assets.engines.replicas.ray_connection import RaySettings


class RayCluster(RayResource):
    """Ray on this machine, or a cluster that is there; started or joined when a step first needs it.

    It stays warm over the steps of a run and ends with it. Use `ray_cluster.connect(context)` in
    assets of your own. For a cluster on Kubernetes that comes and goes with the run give dagster-ray's
    `KubeRayCluster` or `KubeRayInteractiveJob` in its place.
    """

    lifecycle: Lifecycle = Field(
        default_factory=lambda: Lifecycle(connect=False), description="By default connected when needed."
    )
    address: str | None = Field(
        default=None,
        description="`local`, `auto`, `host:port` or `ray://host:port`; default: RAY_ADDRESS, else `local`.",
    )
    num_cpus: int | None = Field(default=None, description="CPUs of a local cluster; default: the cores.")
    num_gpus: int | None = Field(default=None, description="GPUs of a local cluster; default: those found.")
    object_store_memory: int | None = Field(default=None, description="Bytes of a local cluster's store.")
    include_dashboard: bool = Field(default=False, description="Starts Ray's dashboard with a local cluster.")
    runtime_env: dict[str, Any] | None = Field(default=None, description="Ray's environment of all replicas.")
    auth_token: str | None = Field(default=None, description="The token of a cluster that asks for one.")
    autoscaling: bool = Field(
        default=False, description="The cluster grows: requests are not checked against its nodes of now."
    )

    def settings(self) -> RaySettings:
        """The same as plain values."""
        settings = RaySettings(self.address, token=self.auth_token, autoscaling=self.autoscaling)
        init: dict[str, object] = dict(self.ray_init_options)
        if settings.resolved_address == "local":
            init |= {
                "num_cpus": self.num_cpus,
                "num_gpus": self.num_gpus,
                "object_store_memory": self.object_store_memory,
                "include_dashboard": self.include_dashboard,
            }
        env = dict(self.runtime_env or {})
        variables = {**(env.get("env_vars") or {}), **self.get_env_vars_to_inject()}
        if variables:
            env["env_vars"] = variables
        if env:
            init["runtime_env"] = env
        return RaySettings(self.address, init, self.auth_token, self.autoscaling)

    @property
    def host(self) -> str:
        """Where the cluster's head is."""
        address = self.settings().resolved_address.removeprefix("ray://")
        return "127.0.0.1" if address in ("local", "auto") else address.rpartition(":")[0]

    @property
    def name(self) -> str:
        """How logs call it."""
        return f"Ray at {self.settings().resolved_address}"

    @property
    def created(self) -> bool:
        """Nothing is created before it is needed."""
        return True

    @property
    def ready(self) -> bool:
        """There is nothing to wait for."""
        return True

    @property
    def connected(self) -> bool:
        """Whether this process is connected to Ray."""
        return ray_connection.is_connected()

    def connect(  # pyright: ignore[reportIncompatibleVariableOverride]  the base's is wrapped by tenacity
        self, context: AnyDagsterContext
    ) -> Any:
        """Connects this process, in seconds at most, where it is not connected yet. Raises ConfigError."""
        return ray_connection.connect(self.settings())

    def on_connect(self, context: AnyDagsterContext) -> None:
        """Says where it is connected to."""
        if context.log is not None:
            context.log.info(f"Connected to {self.name}")

    @contextlib.contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> "Generator[RayCluster, None, None]":
        """Keeps the connection over the steps of the run."""
        with ray_connection.held(), super().yield_for_execution(context) as resource:
            yield resource

    def cleanup(self, context: AnyDagsterContext, exception: BaseException | None) -> None:
        """Nothing: the connection ends with its last holder."""
