"""The pool of replicas: deals chunks of all batches in hand out, replaces the dead, restores the order."""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from dataflow_assets.batch import packed
from dataflow_assets.control import StopFlag
from dataflow_assets.engines.isolation import killed, none_kept
from dataflow_assets.engines.replicas.chunks import BatchDone, BatchInHand, Chunk, ChunkSize
from dataflow_assets.engines.replicas.host import ChunkDone, ChunkLost, Replica, ReplicaDied, ReplicaHost
from dataflow_assets.engines.replicas.request import ReplicaRequest
from dataflow_assets.engines.wire import from_wire
from dataflow_assets.errors import DataflowError, ReplicaError, Stopped
from dataflow_assets.operators.operator import Outcome, RowOperator

MAX_STARTS = 3
MAX_DEATHS_IN_A_ROW = 50
_LOOK_EVERY_S = 0.2
_LATE = 2.0
_LATE_S = 0.1


@dataclass(eq=False)
class _Member:
    """A replica of the pool and the chunks that it has, the first of them at work."""

    replica: Replica
    takes_the_place: bool
    since: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    chunks: "dict[Chunk, Future[ChunkDone]]" = field(default_factory=dict)

    def at_work(self) -> Chunk:
        """The chunk that it does now."""
        return next(iter(self.chunks))


class ReplicaPool:
    """`replicas` of one operator on a host, started at the first batch and kept until `close`.

    Batches come from several threads; chunks of all of them are in the pool at a time, the earliest
    batch first, so that no replica waits for the end of a batch. A replica has one chunk at work
    and at most one behind it. When a replica dies another takes its place and its chunks are done
    again; only the one at work is charged with the death. After `MAX_ATTEMPTS` deaths a chunk is
    halved until the row is found that ends its process; that row fails as WorkerDied.

    One thread owns all state; what ends it is raised for every batch. Thread-safe.
    """

    def __init__(self, name: str, operator: RowOperator, host: ReplicaHost, request: ReplicaRequest) -> None:
        self._name = name
        self._operator = operator
        self._host = host
        self._request = request
        self._size = ChunkSize(request.chunk_rows, request.replicas)
        self._stop = StopFlag()
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended: BaseException | None = None
        self._batches: list[BatchInHand] = []
        self._members: list[_Member] = []
        self._again: deque[Chunk] = deque()
        self._starts_failed = 0
        self._deaths_in_a_row = 0

    def begin(self, stop: StopFlag) -> None:
        """Looks at this flag from now on: once it is up no batch is begun, begun ones are finished."""
        self._stop = stop

    def run(self, table: pa.Table) -> BatchDone:
        """What became of the rows of a batch, in their order. Raises ReplicaError, ConfigError, Stopped."""
        if not table.num_rows:
            return BatchDone(Outcome(none_kept(self._operator, table)), {})
        batch = BatchInHand(table)
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._batches.append(batch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="replicas", daemon=True)
                self._thread.start()
        self._events.put(_wake)
        return batch.future.result()

    def close(self) -> None:
        """Ends all replicas, so that what they reserved is free; batches in hand raise Stopped."""
        closed = Stopped("the step was closed")
        with self._lock:
            if self._thread is None:
                self._ended = self._ended or closed
                return
        self._events.put(partial(_raise, closed))
        self._thread.join()

    def _work(self) -> None:
        """The thread of the pool: one event after another until one raises."""
        try:
            self._host.open()
            for _ in range(self._request.replicas):
                self._start(takes_the_place=False)
            while True:
                self._deal()
                self._handle_events()
                self._look()
        except BaseException as error:  # noqa: BLE001  whoever waits for a batch raises it
            self._free(error)

    def _handle_events(self) -> None:
        """Waits for an event, and handles all that came by then."""
        try:
            self._events.get(timeout=_LOOK_EVERY_S)()
            while True:
                self._events.get_nowait()()
        except queue.Empty:
            pass

    def _free(self, error: BaseException) -> None:
        """Kills the replicas, and lets every batch raise what ended the pool."""
        with contextlib.ExitStack() as last_first:  # all of it, though one raises
            last_first.callback(self._end_batches, error)
            last_first.callback(self._host.close)
            for member in self._members:
                last_first.callback(member.replica.kill)

    def _end_batches(self, error: BaseException) -> None:
        with self._lock:
            self._ended = error
        for batch in self._batches:
            batch.future.set_exception(error)

    def _start(self, takes_the_place: bool) -> None:
        member = _Member(self._host.start(), takes_the_place)
        self._members.append(member)
        member.replica.ready.add_done_callback(lambda _: self._events.put(partial(self._started, member)))

    def _started(self, member: _Member) -> None:
        if member not in self._members:
            return
        error = member.replica.ready.exception()
        if error is None:
            member.is_ready, self._starts_failed = True, 0
            return
        if not isinstance(error, ReplicaDied):
            raise _of_all(error, f"step {self._name!r}: its operator cannot be made in a replica")
        self._starts_failed += 1
        if self._starts_failed >= MAX_STARTS:
            raise ReplicaError(
                f"step {self._name!r}: a replica died {MAX_STARTS} times while it made its operator: {error}"
            )
        self._replace(member)

    def _replace(self, member: _Member) -> None:
        self._members.remove(member)
        member.replica.kill()
        self._start(takes_the_place=True)

    def _look(self) -> None:
        """Raises ReplicaError where replicas are not ready in time.

        One that takes the place of a dead one is not waited for while others work.
        """
        ready = sum(member.is_ready for member in self._members)
        oldest = time.monotonic() - self._request.start_timeout_s
        for member in self._members:
            if member.is_ready or member.since > oldest or (member.takes_the_place and ready):
                continue
            raise ReplicaError(
                f"step {self._name!r}: {ready} of {self._request.replicas} replicas were ready within "
                f"{self._request.start_timeout_s:g} s ({self._request}); "
                f"{member.replica.why_not_ready()}"
            )

    def _deal(self) -> None:
        """Gives every idle replica a chunk, then those a second one that will soon be idle."""
        if self._stop:
            self._drop_what_is_not_begun()
        for member in self._members:
            if member.is_ready and not member.chunks:
                chunk = self._again.popleft() if self._again else self._next_chunk()
                if chunk is not None:
                    self._give(member, chunk)
        for member in self._members:
            if len(member.chunks) == 1 and self._may_queue(member.at_work()):
                chunk = self._next_chunk()
                if chunk is not None:
                    self._give(member, chunk)

    def _drop_what_is_not_begun(self) -> None:
        try:
            self._stop.raise_if_up()
        except Stopped as stopped:
            for batch in [batch for batch in self._batches if not batch.has_begun]:
                self._batches.remove(batch)
                batch.future.set_exception(stopped)

    def _next_chunk(self) -> Chunk | None:
        for batch in self._batches:
            if batch.left:
                return batch.next_chunk(self._size.rows(self._left()))
        return None

    def _left(self) -> int:
        return sum(batch.left for batch in self._batches)

    def _may_queue(self, at_work: Chunk) -> bool:
        """Whether the next chunk may wait behind this one: not near the end, not behind a slow one."""
        left = self._left()
        if at_work.is_suspect or left <= 2 * self._request.replicas * self._size.rows(left):
            return False
        expected = self._size.seconds(at_work.rows)
        return time.monotonic() - at_work.since < max(_LATE * expected, _LATE_S)

    def _give(self, member: _Member, chunk: Chunk) -> None:
        chunk.since = time.monotonic()
        future = member.replica.submit(packed(chunk.table))
        member.chunks[chunk] = future
        future.add_done_callback(lambda _: self._events.put(partial(self._answered, member, chunk)))

    def _answered(self, member: _Member, chunk: Chunk) -> None:
        if chunk not in member.chunks:  # its replica's death was handled
            return
        error = member.chunks[chunk].exception()
        if error is None:
            self._done(member, chunk)
        elif isinstance(error, ReplicaDied):
            self._died(member)
        elif isinstance(error, ChunkLost):
            del member.chunks[chunk]
            self._charge(chunk)
        else:
            raise _of_all(error, f"step {self._name!r}: its operator failed in a replica")

    def _done(self, member: _Member, chunk: Chunk) -> None:
        done = member.chunks.pop(chunk).result()
        if member.chunks:
            member.at_work().since = time.monotonic()
        self._deaths_in_a_row = 0
        self._size.took(chunk.rows, done.seconds)
        chunk.batch.noted(done.seconds, done.log)
        self._add(chunk, from_wire(done.outcome))

    def _add(self, chunk: Chunk, outcome: Outcome) -> None:
        chunk.batch.add(chunk, outcome)
        if chunk.batch.future.done():
            with self._lock:
                self._batches.remove(chunk.batch)

    def _died(self, member: _Member) -> None:
        """Takes what the replica had done, charges what it was doing, and starts another."""
        for chunk, future in list(member.chunks.items()):
            if future.done() and future.exception() is None:
                self._done(member, chunk)
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= MAX_DEATHS_IN_A_ROW:
            raise ReplicaError(
                f"step {self._name!r}: {MAX_DEATHS_IN_A_ROW} replicas died and none did a chunk meanwhile; "
                "is there memory enough for so many of them?"
            )
        owed, member.chunks = list(member.chunks), {}
        if owed:
            at_work, *behind = owed
            for chunk in reversed(behind):
                chunk.batch.redone += 1
                self._again.appendleft(chunk)
            at_work.batch.deaths += 1
            self._charge(at_work)
        self._replace(member)

    def _charge(self, chunk: Chunk) -> None:
        """Does the chunk again, in halves where it was tried often enough; a single row fails."""
        chunk.deaths += 1
        if chunk.deaths < chunk.allowed:
            chunk.batch.redone += 1
            self._again.append(chunk)
        elif chunk.rows == 1:
            self._add(chunk, killed(self._operator, chunk.table, chunk.deaths))
        else:
            chunk.batch.redone += 1
            self._again.extend(chunk.halves())


def _wake() -> None:
    """Nothing but an event, so that the pool looks at its batches."""


def _raise(error: BaseException) -> None:
    raise error


def _of_all(error: BaseException, what: str) -> BaseException:
    """The error as what ends the pool: one of ours as it is, another with its class and message."""
    if isinstance(error, DataflowError):
        return error
    return ReplicaError(f"{what}: {type(error).__name__}: {error}")
