"""An operator on replicas, for code of your own: what the options of a step are in a pipeline."""

from collections.abc import Mapping
from types import TracebackType
from typing import Literal

import pyarrow as pa

from dataflow_assets.engines.replicas.pool import ReplicaPool
from dataflow_assets.engines.replicas.ray_connection import RaySettings, require_ray
from dataflow_assets.engines.replicas.ray_host import RayHost
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Operator, Outcome, RowOperator
from dataflow_assets.pipeline.replicas import ReplicaOptions, replica_problems, replica_request
from dataflow_assets.pipeline.step import take_over


class Replicated:
    """A row operator on replicas. They are started by the first `apply`, and end with `close`."""

    def __init__(self, operator: RowOperator, pool: ReplicaPool) -> None:
        self.operator = operator
        self._pool = pool

    def apply(self, table: pa.Table) -> Outcome:
        """The operator's outcome on these rows, in their order; may be called from several threads."""
        return self._pool.run(table).outcome

    def close(self) -> None:
        """Ends the replicas, and Ray where nobody else holds it."""
        self._pool.close()

    def __enter__(self) -> "Replicated":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def replicated(
    operator: Operator,
    *,
    replicas: int,
    num_gpus_per_replica: float | None = None,
    num_cpus_per_replica: float | None = None,
    chunk_rows: int | Literal["auto"] = "auto",
    resources: Mapping[str, float] | None = None,
    runtime_env: Mapping[str, object] | None = None,
    start_timeout_s: float | None = None,
    ray: RaySettings | None = None,
) -> Replicated:
    """The operator on so many replicas; use it in a `with`, so that its GPUs are free afterwards.

    The options are those of a step; `ray` is by default what RAY_ADDRESS says, else this machine.
    Raises ConfigError for what a step may not ask either.
    """
    require_ray()
    options = ReplicaOptions.__new__(ReplicaOptions)
    given = {
        "replicas": replicas,
        "num_gpus_per_replica": num_gpus_per_replica,
        "num_cpus_per_replica": num_cpus_per_replica,
        "chunk_rows": chunk_rows,
        "resources": None if resources is None else dict(resources),
        "runtime_env": None if runtime_env is None else dict(runtime_env),
        "start_timeout_s": start_timeout_s,
    }
    problems = take_over(options, given) or replica_problems(options, operator)
    if problems:
        raise ConfigError([problem.message for problem in problems])
    request = replica_request(options)
    assert request is not None and isinstance(operator, RowOperator)
    host = RayHost(operator.name, operator, request, ray or RaySettings())
    return Replicated(operator, ReplicaPool(operator.name, operator, host, request))
