"""Whole batches, here or in worker processes that read, work and write by themselves."""

import pickle
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache

from dataflow_assets.engines.where_it_pays import Payoff
from dataflow_assets.engines.worker_pool import WorkerPool, submit
from dataflow_assets.io.batch_stream import BatchStream, Known, Made, all_there, make


class MadeHere:
    """Makes batches in the calling thread, and so shows what they cost."""

    def __init__(self, payoff: Payoff) -> None:
        self._payoff = payoff

    def __call__(self, streams: Sequence[BatchStream], key: str, known: Known) -> Made:
        """The batch of each stream."""
        with self._payoff.measured():
            return make(streams, key, known)


class MadeInProcesses:
    """Makes batches in the processes of a pool, through all steps that follow each other at once.

    So rows do not go from process to process: the files are read and written there, and what comes back
    are records. Before `payoff` says that the processes are worth their start, and where all is there
    already, no process is asked. A batch whose process dies is made here, where the engines of its steps
    have processes of their own and find the row that kills them.
    """

    def __init__(self, pool: WorkerPool, payoff: Payoff) -> None:
        self._pool = pool
        self._payoff = payoff
        self._here = MadeHere(payoff)
        self._packed: bytes | None = None

    def __call__(self, streams: Sequence[BatchStream], key: str, known: Known) -> Made:
        """The batch of each stream."""
        there = all_there(streams, key, known)
        if there is not None:
            return there
        if not self._payoff.is_worth_it:
            return self._here(streams, key, known)
        if self._packed is None:
            self._packed = pickle.dumps([_to_go(stream) for stream in streams])
        executor = self._pool.executor()
        try:
            return submit(executor, _make, self._packed, key, known).result()
        except BrokenProcessPool:
            self._pool.discard(executor)
            return make(streams, key, known)


def _to_go(stream: BatchStream) -> BatchStream:
    """What a worker must know of a stream."""
    return BatchStream(
        stream.name,
        stream.folder,
        (),
        stream.fingerprint,
        stream.compute,
        reuse=stream.reuse,
        parents=stream.parents,
        look=stream.look,
    )


def _make(packed: bytes, key: str, known: Known) -> Made:
    return make(_streams(packed), key, known)


@lru_cache(maxsize=1)
def _streams(packed: bytes) -> Sequence[BatchStream]:
    """The streams with their operators, built once for all batches."""
    return pickle.loads(packed)
