"""The interface between the pool and whatever runs its replicas: Ray, or threads of this process."""

from concurrent.futures import Future
from typing import NamedTuple, Protocol

from dataflow_assets.batch import unpacked
from dataflow_assets.engines.isolation import isolated
from dataflow_assets.engines.wire import Wire, to_wire
from dataflow_assets.operators.operator import RowOperator


class ReplicaDied(Exception):
    """The replica is gone, and the answers that it still owed with it."""


class ChunkLost(Exception):
    """The replica lives, but its answer did not come through."""


class ReplicaInfo(NamedTuple):
    """Where a replica runs: process, node, and the GPUs that it was given and that it sees."""

    pid: int
    node: str
    gpus: tuple[str, ...] = ()
    visible_devices: str | None = None


class ChunkDone(NamedTuple):
    """What became of a chunk: its outcome, the seconds of work, and what was logged meanwhile."""

    outcome: Wire
    seconds: float
    log: tuple[str, ...] = ()


class Replica(Protocol):
    """One process with one instance of the operator.

    The futures end with ReplicaDied when the process ends, with ChunkLost when only the answer is
    lost, and with the operator's own error where that is not a row's.
    """

    @property
    def ready(self) -> "Future[ReplicaInfo]":
        """Done when the operator is made."""
        ...

    def submit(self, rows: bytes) -> "Future[ChunkDone]":
        """Does a chunk of rows after those that were submitted before."""
        ...

    def why_not_ready(self) -> str:
        """What it waits for, and who holds that."""
        ...

    def kill(self) -> None:
        """Ends the process at once."""
        ...


class ReplicaHost(Protocol):
    """Starts replicas of one operator."""

    def open(self) -> None:
        """Connects. Raises ConfigError for a request that can never be met."""
        ...

    def start(self) -> Replica:
        """Begins a replica; it counts as there when it is `ready`."""
        ...

    def close(self) -> None:
        """Frees what the host itself holds, after the replicas were killed."""
        ...


def done_here(operator: RowOperator, rows: bytes) -> Wire:
    """The outcome of a chunk, in the process of the replica; a row that raises fails alone."""
    return to_wire(isolated(operator, unpacked(rows)))
