"""The lazy stream of one step's batches, and the loop that pulls it and commits batch by batch."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from dataflow_assets.control import StopFlag
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.step_folder import Origin, Prepared, StepFolder
from dataflow_assets.operators.operator import Outcome


class Committed(NamedTuple):
    """A batch that exists now: its record, where it is, and whether it was there before.

    `head` has its first rows where they were at hand.
    """

    record: CommitRecord
    folder: StepFolder
    reused: bool
    head: pa.Table | None = None


class Committable(Protocol):
    """What an asset hands to the IO manager: batches that come into being as they are pulled."""

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Commits what is missing, one batch after another. Raises Stopped once `stop` is up."""
        ...


class Work(NamedTuple):
    """What a batch became, and where it comes from."""

    outcome: Outcome
    origin: Origin


class ToTranscode(NamedTuple):
    """A batch that is committed, but not in the format or place that is wanted."""

    record: CommitRecord


Ready = CommitRecord | Prepared | ToTranscode
"""What a task makes of its batch: it was there, it is durable but not published, or must be moved."""


@dataclass(frozen=True)
class BatchStream:
    """One step's batches, none of them computed yet.

    `fingerprint(key)` says what the batch would be made of, `compute(key, fingerprint)` makes it;
    both may run in any thread, for `workers` batches at a time. With `reuse` off, committed
    batches are made again.
    """

    folder: StepFolder
    keys: Sequence[str]
    fingerprint: Callable[[str], str]
    compute: Callable[[str, str], Work]
    workers: int = 1
    reuse: bool = True
    close: Callable[[], None] = lambda: None

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Makes what is missing of these batches and commits each, in the order of the keys."""
        tasks = (partial(self._ready, key) for key in self.keys)
        with contextlib.closing(self):
            yield from commit_in_order(self.folder, tasks, self.workers, stop)

    def _ready(self, key: str) -> Ready:
        fingerprint = self.fingerprint(key)
        record = self.folder.record(key) if self.reuse else None
        if record is not None and record.fingerprint == fingerprint:
            return as_wanted(self.folder, record)
        work = self.compute(key, fingerprint)
        return self.folder.prepare(key, work.outcome, work.origin)


def as_wanted(folder: StepFolder, record: CommitRecord) -> Ready:
    """The record where its batch is stored as `folder` stores batches, else the order to move it."""
    wanted = os.path.relpath(folder.file_of(record.batch), folder.path)
    return record if record.files["kept"].name == wanted else ToTranscode(record)


def commit_in_order(
    folder: StepFolder, tasks: Iterator[Callable[[], Ready]], workers: int, stop: StopFlag
) -> Iterator[Committed]:
    """Runs the tasks in `workers` threads and commits each batch here, in the order of the tasks.

    At most one task more than there are threads is taken from `tasks` ahead of its commit. When
    `stop` goes up, the batches in hand are finished and committed, then Stopped is raised. An error
    of one batch is raised when its turn comes: those before it are committed.
    """
    pending: deque[Future[Ready]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="batch")
    try:
        while True:
            while len(pending) <= workers and not stop and (task := next(tasks, None)) is not None:
                pending.append(pool.submit(task))
            if stop:
                yield from _finish_in_hand(folder, pending)
                stop.raise_if_up()
            if not pending:
                return
            yield _commit(folder, pending.popleft().result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finish_in_hand(folder: StepFolder, pending: Iterable[Future[Ready]]) -> Iterator[Committed]:
    for future in pending:
        if not future.cancel():
            yield _commit(folder, future.result())


def _commit(folder: StepFolder, ready: Ready) -> Committed:
    if isinstance(ready, CommitRecord):
        return Committed(ready, folder, reused=True)
    if isinstance(ready, ToTranscode):
        return Committed(folder.transcode(ready.record.batch, ready.record), folder, reused=True)
    return Committed(folder.commit(ready), folder, reused=False, head=ready.head)
