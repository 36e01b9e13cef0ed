"""Worker processes on this machine: started when first used, new ones where one died."""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, resource_tracker
from typing import ParamSpec, TypeVar

from dataflow_assets.errors import RunError, said_by
from dataflow_assets.memory import settle_memory

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class WorkerPool:
    """Some `workers` processes for everything that shares them. Thread-safe.

    When one dies, all that was in hand raises BrokenProcessPool: whoever sees it says so by `discard`,
    and the next task gets new processes.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None

    def executor(self) -> ProcessPoolExecutor:
        """The processes as they are now; started when the first task is given to them."""
        with self._lock:
            if self._executor is None:
                self._executor = new_executor(self.workers)
            return self._executor

    def start(self, needed: object) -> None:
        """Starts all processes now; each imports and builds what pickled `needed` is made of."""
        data = pickle.dumps(needed)
        for _ in range(self.workers):
            submit(self.executor(), _get_ready, data)

    def discard(self, executor: ProcessPoolExecutor) -> None:
        """Gives up processes one of which died."""
        with self._lock:
            if self._executor is executor:
                self._executor = None
        executor.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Ends the processes and waits for them; a later task starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)


class WorkerPools:
    """The pools of a run, one for each number of workers. Pickled, it has none: workers start no workers."""

    def __init__(self) -> None:
        self._pools: dict[int, WorkerPool] = {}

    def of(self, workers: int) -> WorkerPool:
        """The pool of so many workers."""
        return self._pools.setdefault(workers, WorkerPool(workers))

    def close(self) -> None:
        """Ends the processes of all pools."""
        for pool in self._pools.values():
            pool.close()

    def __reduce__(self) -> tuple[type["WorkerPools"], tuple[()]]:
        return WorkerPools, ()


def new_executor(workers: int) -> ProcessPoolExecutor:
    """Processes that import what this one can and end with this one; give them tasks by `submit`."""
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(list(sys.path),)
    )


def submit(
    executor: ProcessPoolExecutor,
    task: Callable[_Given, _Result],
    *args: _Given.args,
    **kwargs: _Given.kwargs,
) -> Future[_Result]:
    """The task's future; where the processes are broken already it says so like any other.

    The first tasks start the processes, which begin with the signals of this thread: without Ctrl-C. It
    reaches all processes of a terminal, and the parent decides what becomes of the work in hand. What the
    task raises is raised here too, as RunError where it is an error that cannot go between processes.
    """
    try:
        with _without_ctrl_c():
            return executor.submit(_done, task, *args, **kwargs)
    except BrokenProcessPool as error:
        broken: Future[_Result] = Future()
        broken.set_exception(error)
        return broken


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Blocks SIGINT in this thread, and for good in the processes and threads that it starts.

    Ignoring it in them is not enough: polars puts a handler of its own in its place.
    """
    resource_tracker.ensure_running()  # unblocks the signal when it starts its process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(path: list[str]) -> None:
    """Makes a new worker import what its parent can, and end with it."""
    sys.path[:] = path
    settle_memory(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _done(task: Callable[_Given, _Result], *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
    try:
        return task(*args, **kwargs)
    except Exception as error:
        _raise_if_it_stays(error)
        raise


def _raise_if_it_stays(error: Exception) -> None:
    """Raises RunError with the class and text of an error that does not come through whole.

    The parent takes one that it cannot read for the end of the process, and so for a row that ends it.
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  whatever the error's own class does
        raise RunError(f"the run failed: {type(error).__name__}: {said_by(error)}") from error


def _get_ready(data: bytes) -> None:
    pickle.loads(data)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
