"""Worker processes on this machine: Arrow chunks out, Arrow chunks back, dead workers replaced."""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process

import pyarrow as pa
from pydantic import BaseModel

from dataflow_assets.batch import packed, unpacked
from dataflow_assets.control import StopFlag
from dataflow_assets.engines.engine import joined_outcomes
from dataflow_assets.engines.isolation import killed
from dataflow_assets.engines.wire import Wire, from_wire, to_wire
from dataflow_assets.operators.operator import Operator, Outcome, RowOperator

MAX_ATTEMPTS = 3
_MIN_CHUNK_ROWS = 256
_OperatorSpec = tuple[type[Operator], BaseModel]


class ProcessEngine:
    """A pool of `workers` processes, started when first used.

    `run` cuts a batch into chunks (of `chunk_rows`, else one for each worker) and puts the results
    together in order. A worker that dies is noticed at once and the chunks that were in flight are
    done again, each alone in a fresh process: one that kills its process `MAX_ATTEMPTS` times is
    halved until the killing row is found, and that row fails as WorkerDied. Thread-safe.
    """

    def __init__(self, workers: int, chunk_rows: int | None = None) -> None:
        self.workers = workers
        self.chunk_rows = chunk_rows
        self._lock = threading.Lock()
        self._alone = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def begin(self, stop: StopFlag) -> None:
        """A chunk is short: it is not stopped."""

    def run(self, operator: RowOperator, table: pa.Table) -> Outcome:
        """The operator's outcome on all rows, in row order."""
        chunks = _chunks(table, self.chunk_rows or max(_MIN_CHUNK_ROWS, -(-table.num_rows // self.workers)))
        spec = (type(operator), operator.params)
        pool = self._current_pool()
        futures = [_submit(pool, spec, chunk) for chunk in chunks]
        outcomes = []
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                outcomes.append(from_wire(future.result()))
            except BrokenProcessPool:
                self._discard(pool)
                outcomes.append(self._run_alone(spec, chunk))
        return joined_outcomes(outcomes)

    def _current_pool(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = _new_pool(self.workers)
            return self._pool

    def _discard(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        pool.shutdown(wait=False, cancel_futures=True)

    def _run_alone(self, spec: _OperatorSpec, chunk: pa.Table) -> Outcome:
        """Does a chunk that was in flight when a worker died, where only it can be the killer."""
        with self._alone:
            return joined_outcomes(_isolated(spec, chunk, MAX_ATTEMPTS))

    def close(self) -> None:
        """Ends the workers and waits for them."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _isolated(spec: _OperatorSpec, chunk: pa.Table, attempts: int) -> Iterator[Outcome]:
    for _ in range(attempts):
        with _new_pool(1) as pool:
            try:
                yield from_wire(_submit(pool, spec, chunk).result())
            except BrokenProcessPool:
                continue
            return
    if chunk.num_rows == 1:
        yield killed(spec[0](spec[1]), chunk, attempts)  # pyright: ignore[reportArgumentType]
        return
    half = chunk.num_rows // 2
    for part in (chunk.slice(0, half), chunk.slice(half)):
        yield from _isolated(spec, part, MAX_ATTEMPTS if part.num_rows == 1 else 1)


def _chunks(table: pa.Table, rows: int) -> Sequence[pa.Table]:
    return [table.slice(start, rows) for start in range(0, table.num_rows, rows)] or [table]


def _new_pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(list(sys.path),)
    )


def _start_worker(path: list[str]) -> None:
    """Makes a new worker import what its parent can, and end with it alone.

    Ctrl-C reaches all processes of a terminal: the parent decides what becomes of the work in hand.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _submit(pool: ProcessPoolExecutor, spec: _OperatorSpec, chunk: pa.Table) -> "Future[Wire]":
    try:
        return pool.submit(_work, spec, packed(chunk))
    except BrokenProcessPool as error:
        broken: Future[Wire] = Future()
        broken.set_exception(error)
        return broken


def _work(spec: _OperatorSpec, data: bytes) -> Wire:
    return to_wire(_operator(*spec).apply(unpacked(data)))


_built: dict[tuple[type[Operator], bytes], RowOperator] = {}


def _operator(kind: type[Operator], params: BaseModel) -> RowOperator:
    """One operator instance for each step in a worker, however many chunks it does.

    Pickled parameters tell secrets and what was read from files apart; their JSON does not.
    """
    key = (kind, pickle.dumps(params))
    if key not in _built:
        _built[key] = kind(params)  # pyright: ignore[reportArgumentType]
    return _built[key]
