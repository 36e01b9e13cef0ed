"""What a step asks of a cluster: how many replicas, and what each of them needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

START_TIMEOUT_S = 300.0
_CHUNK_ROWS = 256
_CHUNKS_IN_HAND = 4
_MAX_BATCHES = 64


@dataclass(frozen=True)
class ReplicaRequest:
    """`replicas` processes, each with so many CPUs and GPUs and so much of other resources.

    A fraction of a GPU shares it: four replicas of 0.25 sit on one. Nothing asked for is nothing
    reserved. `chunk_rows` None lets the pool find the size. `runtime_env` is Ray's.
    """

    replicas: int = 1
    num_gpus: float = 0.0
    num_cpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)
    runtime_env: Mapping[str, object] | None = None
    chunk_rows: int | None = None
    start_timeout_s: float = START_TIMEOUT_S

    @property
    def needs(self) -> dict[str, float]:
        """What one replica reserves, by Ray's names of the resources."""
        needs = {"GPU": self.num_gpus, "CPU": self.num_cpus, **self.resources}
        return {name: amount for name, amount in needs.items() if amount}

    def batches_in_hand(self, batch_rows: int) -> int:
        """So many batches that the end of one leaves no replica idle."""
        wanted = _CHUNKS_IN_HAND * self.replicas * (self.chunk_rows or _CHUNK_ROWS)
        return min(_MAX_BATCHES, -(-wanted // batch_rows) + 1)

    def __str__(self) -> str:
        return f"{self.replicas} x {shown_resources(self.needs)}"


def shown_resources(resources: Mapping[str, float]) -> str:
    """`0.25 GPU, 1 CPU`."""
    return ", ".join(f"{amount:g} {name}" for name, amount in resources.items()) or "nothing reserved"
