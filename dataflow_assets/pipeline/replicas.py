"""What a step says about replicas: as a request to a cluster, and what cannot be asked."""

import importlib.util
import os
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dataflow_assets.engines.replicas.request import START_TIMEOUT_S, ReplicaRequest
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.operators.operator import DatasetOperator, Operator
from dataflow_assets.pipeline.problems import Problem, listed, near_names

_OWN_NAMES = ("CPU", "GPU", "memory", "object_store_memory")
RUNTIME_ENV_KEYS = (
    "config",
    "conda",
    "container",
    "env_vars",
    "excludes",
    "image_uri",
    "java_jars",
    "pip",
    "py_executable",
    "py_modules",
    "uv",
    "worker_process_setup_hook",
    "working_dir",
)


class ReplicaOptions(BaseModel):
    """How the replicas of a step are, where it has some."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    replicas: int | None = Field(default=None, ge=1, description="Replicas of the operator on Ray.")
    num_gpus_per_replica: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="GPUs of each replica: a part of one, or whole."
    )
    num_cpus_per_replica: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="CPUs that are reserved for each replica."
    )
    resources: dict[str, float] | None = Field(
        default=None, description="Other resources of the cluster that each replica reserves, by name."
    )
    runtime_env: dict[str, object] | None = Field(
        default=None, description="Ray's runtime environment of the replicas, e.g. `{pip: [...]}`."
    )
    start_timeout_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Seconds in which all replicas must be ready."
    )
    workers: int | None = Field(default=None, ge=1, description="Workers of this step.")
    chunk_rows: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto", description="Rows that a worker or replica is given at once."
    )

    @property
    def given(self) -> list[str]:
        """The options of replicas that were given; with any of them the step runs on Ray."""
        names = set(ReplicaOptions.model_fields) - {"workers", "chunk_rows"}
        return [
            name for name in ReplicaOptions.model_fields if name in names and getattr(self, name) is not None
        ]


def replica_request(step: ReplicaOptions) -> ReplicaRequest | None:
    """What the step asks of a cluster; None for a step without any option of replicas."""
    if not step.given:
        return None
    return ReplicaRequest(
        replicas=step.replicas or 1,
        num_gpus=step.num_gpus_per_replica or 0.0,
        num_cpus=step.num_cpus_per_replica or 0.0,
        resources=step.resources or {},
        runtime_env=step.runtime_env,
        chunk_rows=None if isinstance(step.chunk_rows, str) else step.chunk_rows,
        start_timeout_s=step.start_timeout_s or START_TIMEOUT_S,
    )


def replica_problems(step: ReplicaOptions, operator: Operator) -> list[Problem]:
    """The mistakes in what a step says about replicas."""
    if not step.given:
        return []
    return [
        *_wrong_operator(step.given, operator),
        *_wrong_values(step),
        *_unknown_keys(step.runtime_env or {}),
    ]


def _wrong_operator(given: list[str], operator: Operator) -> list[Problem]:
    if isinstance(operator, DatasetOperator) or operator.needs_all_rows:
        return [
            Problem(
                f"{operator.name} decides over all rows of the data set, so it cannot be divided between "
                f"replicas; leave out {listed(given)}",
                (given[0],),
            )
        ]
    if isinstance(operator, LLMOperator):
        return [
            Problem(
                f"{operator.name} asks a serving, many rows at once, from one process; leave out "
                f"{listed(given)} and raise the serving's `concurrency`",
                (given[0],),
            )
        ]
    return []


def _wrong_values(step: ReplicaOptions) -> list[Problem]:
    problems = []
    gpus = step.num_gpus_per_replica or 0.0
    if gpus > 1 and gpus != int(gpus):
        problems.append(
            Problem(
                f"num_gpus_per_replica is {gpus:g}; more than one GPU must be a whole number",
                ("num_gpus_per_replica",),
            )
        )
    if step.workers is not None:
        problems.append(
            Problem("workers are of this machine, replicas of a cluster; give one of them", ("workers",))
        )
    for name, amount in (step.resources or {}).items():
        if name in _OWN_NAMES:
            problems.append(
                Problem(
                    f"resources may not have {name!r}; say num_cpus_per_replica or num_gpus_per_replica",
                    ("resources", name),
                )
            )
        elif not 0 < amount < float("inf"):
            problems.append(
                Problem(f"resources, {name!r}: found {amount}, expected more than 0", ("resources", name))
            )
    return problems


def _unknown_keys(runtime_env: Mapping[str, object]) -> list[Problem]:
    """The keys that Ray would pass over in silence; those of plugins only the cluster knows."""
    unknown = [key for key in runtime_env if key not in RUNTIME_ENV_KEYS and not key.startswith("_")]
    if not unknown or os.environ.get("RAY_RUNTIME_ENV_PLUGINS"):
        return []
    known = sorted({*RUNTIME_ENV_KEYS, *_keys_of_installed_ray()})
    return [
        Problem(
            f"runtime_env has no {key!r}{near_names(key, known)}; expected {', '.join(known)}",
            ("runtime_env", key),
        )
        for key in unknown
        if key not in known
    ]


def _keys_of_installed_ray() -> set[str]:
    """What this Ray knows, which may be newer than the list; asked only where a key is not in that."""
    if importlib.util.find_spec("ray") is None:
        return set()
    from ray.runtime_env import RuntimeEnv

    return {key for key in RuntimeEnv.known_fields if not key.startswith("_")}
