"""Runs inline until it has shown that worker processes are worth their start."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from dataflow_assets.control import StopFlag
from dataflow_assets.engines.engine import InlineEngine
from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.operators.operator import Outcome, RowOperator

_WORTH_PROCESSES_S = 2.0


class Payoff:
    """Whether worker processes are worth their start, for so many batches; `sure` where a person said so.

    Else a batch shows it, with all that is done with it in one thread.
    """

    def __init__(self, batches: int, sure: bool = False) -> None:
        self.is_worth_it = sure
        self._left = batches
        self._lock = threading.Lock()

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Around the making of a batch in this thread."""
        started = time.thread_time()
        yield
        seconds = time.thread_time() - started
        with self._lock:
            self._left -= 1
            self.is_worth_it = self.is_worth_it or seconds * self._left > _WORTH_PROCESSES_S


class WhereItPays:
    """Runs inline until `payoff` says that the rest is worth the start of processes."""

    def __init__(self, processes: ProcessEngine, payoff: Payoff) -> None:
        self._inline = InlineEngine()
        self._processes = processes
        self._payoff = payoff

    def begin(self, stop: StopFlag) -> None:
        """A chunk is short: it is not stopped."""

    def run(self, operator: RowOperator, table: pa.Table) -> Outcome:
        """The operator's outcome, in this thread or in the processes."""
        engine = self._processes if self._payoff.is_worth_it else self._inline
        return engine.run(operator, table)

    def close(self) -> None:
        """Frees what the operator holds; ends the processes, where there are any."""
        self._inline.close()
        self._processes.close()

    def __reduce__(self) -> tuple[type[InlineEngine], tuple[()]]:
        return InlineEngine, ()  # in a worker, work is done where it is
