"""Replicas that are threads of this process: for tests, and to try a step's options without Ray."""

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import Any

from dataflow_assets.engines.replicas.host import ChunkDone, ReplicaDied, ReplicaInfo, done_here
from dataflow_assets.operators.operator import RowOperator


class ReplicaCrash(BaseException):
    """Raised by an operator, it ends the replica as the end of its process would."""


class InProcessHost:
    """Starts threads. `make` makes the operator of a replica; `started` counts them, `alive` lists them."""

    def __init__(self, make: Callable[[], RowOperator]) -> None:
        self._make = make
        self.started = 0
        self.alive: list[InProcessReplica] = []

    def open(self) -> None:
        """Needs nothing."""

    def start(self) -> "InProcessReplica":
        """Begins a thread."""
        self.started += 1
        replica = InProcessReplica(self._make, self.alive.remove)
        self.alive.append(replica)
        replica.begin()
        return replica

    def close(self) -> None:
        """Holds nothing."""


class InProcessReplica:
    """A thread with one instance of the operator, which does its chunks in order."""

    def __init__(self, make: Callable[[], RowOperator], ended: "Callable[[InProcessReplica], None]") -> None:
        self.ready: Future[ReplicaInfo] = Future()
        self._make = make
        self._ended = ended
        self._chunks: queue.SimpleQueue[tuple[bytes, Future[ChunkDone]] | None] = queue.SimpleQueue()
        self._owed: set[Future[Any]] = {self.ready}
        self._lock = threading.Lock()
        self._is_dead = False

    def begin(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._work, name="replica", daemon=True).start()

    def submit(self, rows: bytes) -> "Future[ChunkDone]":
        """Puts the chunk behind the others."""
        future: Future[ChunkDone] = Future()
        with self._lock:
            if self._is_dead:
                future.set_exception(ReplicaDied("the replica is dead"))
                return future
            self._owed.add(future)
        self._chunks.put((rows, future))
        return future

    def why_not_ready(self) -> str:
        """A thread waits for nothing but its operator."""
        return "the operator of one is not made yet"

    def kill(self) -> None:
        """Ends it; what it owes is never answered. A chunk at work runs on and is thrown away."""
        with self._lock:
            if self._is_dead:
                return
            self._is_dead = True
        self._ended(self)
        self._chunks.put(None)
        for future in self._owed:
            future.set_exception(ReplicaDied("the replica died"))

    def _work(self) -> None:
        try:
            operator = self._make()
            operator.warm_up()
        except ReplicaCrash:
            self.kill()
            return
        except (Exception, SystemExit) as error:  # noqa: BLE001  the pool raises it
            self._answer(self.ready, error)
            return
        self._answer(self.ready, ReplicaInfo(os.getpid(), "here"))
        while (chunk := self._chunks.get()) is not None:
            rows, future = chunk
            started = perf_counter()
            try:
                self._answer(future, ChunkDone(done_here(operator, rows), perf_counter() - started))
            except ReplicaCrash:
                self.kill()
                return
            except (Exception, SystemExit) as error:  # noqa: BLE001  the pool raises it
                self._answer(future, error)

    def _answer(self, future: "Future[Any]", answer: object) -> None:
        """Sets the future, unless the replica was killed meanwhile."""
        with self._lock:
            if self._is_dead:
                return
            self._owed.remove(future)
            if isinstance(answer, Exception | SystemExit):
                future.set_exception(answer)
            else:
                future.set_result(answer)
