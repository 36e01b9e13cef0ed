"""Chunks of a batch in worker processes: Arrow out, Arrow back, the row that kills a worker found."""

import pickle
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pyarrow as pa
from pydantic import BaseModel

from dataflow_assets.batch import packed, unpacked
from dataflow_assets.control import StopFlag
from dataflow_assets.engines.engine import InlineEngine
from dataflow_assets.engines.isolation import isolated, killed
from dataflow_assets.engines.outcomes import joined_outcomes
from dataflow_assets.engines.wire import Wire, from_wire, to_wire
from dataflow_assets.engines.worker_pool import WorkerPool, new_executor, submit
from dataflow_assets.operators.operator import Operator, Outcome, RowOperator

MAX_ATTEMPTS = 3
_MIN_CHUNK_ROWS = 256
_OperatorSpec = tuple[type[Operator], BaseModel]


class ProcessEngine:
    """The processes of a `pool`, which it may share with the engines of other steps.

    `run` cuts a batch into chunks (of `chunk_rows`, else one for each worker) and puts the results
    together in order. A worker that dies is noticed at once and the chunks that were in flight are
    done again, each alone in a fresh process: one that kills its process `MAX_ATTEMPTS` times is
    halved until the killing row is found, and that row fails as WorkerDied. Thread-safe.
    """

    def __init__(self, pool: WorkerPool, chunk_rows: int | None = None) -> None:
        self.pool = pool
        self.chunk_rows = chunk_rows
        self._alone = threading.Lock()

    def begin(self, stop: StopFlag) -> None:
        """A chunk is short: it is not stopped."""

    def run(self, operator: RowOperator, table: pa.Table) -> Outcome:
        """The operator's outcome on all rows, in row order."""
        even = max(_MIN_CHUNK_ROWS, -(-table.num_rows // self.pool.workers))
        chunks = _chunks(table, self.chunk_rows or even)
        spec = (type(operator), operator.params)
        executor = self.pool.executor()
        futures = [_submitted(executor, spec, chunk) for chunk in chunks]
        outcomes = []
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                outcomes.append(from_wire(future.result()))
            except BrokenProcessPool:
                self.pool.discard(executor)
                outcomes.append(self._run_alone(spec, chunk))
        return joined_outcomes(outcomes)

    def _run_alone(self, spec: _OperatorSpec, chunk: pa.Table) -> Outcome:
        """Does a chunk that was in flight when a worker died, where only it can be the killer."""
        with self._alone:
            return joined_outcomes(_isolated(spec, chunk, MAX_ATTEMPTS))

    def close(self) -> None:
        """Ends the workers and waits for them."""
        self.pool.close()

    def __reduce__(self) -> tuple[type[InlineEngine], tuple[()]]:
        return InlineEngine, ()  # in a worker, work is done where it is


def _isolated(spec: _OperatorSpec, chunk: pa.Table, attempts: int) -> Iterator[Outcome]:
    for _ in range(attempts):
        with new_executor(1) as executor:
            try:
                yield from_wire(_submitted(executor, spec, chunk).result())
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


def _submitted(executor: ProcessPoolExecutor, spec: _OperatorSpec, chunk: pa.Table) -> "Future[Wire]":
    return submit(executor, _work, spec, packed(chunk))


def _work(spec: _OperatorSpec, data: bytes) -> Wire:
    return to_wire(isolated(_operator(*spec), unpacked(data)))


_built: dict[tuple[type[Operator], bytes], RowOperator] = {}


def _operator(kind: type[Operator], params: BaseModel) -> RowOperator:
    """One operator instance for each step in a worker, however many chunks it does.

    Pickled parameters tell secrets and what was read from files apart; their JSON does not.
    """
    key = (kind, pickle.dumps(params))
    if key not in _built:
        _built[key] = kind(params)  # pyright: ignore[reportArgumentType]
    return _built[key]
