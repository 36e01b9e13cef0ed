"""Runs inline until it has shown that worker processes are worth their start."""

import threading
import time

import pyarrow as pa

from dataflow_assets.control import StopFlag
from dataflow_assets.engines.engine import InlineEngine
from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.operators.operator import Outcome, RowOperator

_WORTH_PROCESSES_S = 2.0


class WhereItPays:
    """Runs inline until a batch has shown that the rest is worth the start of processes."""

    def __init__(self, processes: ProcessEngine, batches: int) -> None:
        self._inline = InlineEngine()
        self._processes = processes
        self._left = batches
        self._lock = threading.Lock()
        self._worth_it = False

    def begin(self, stop: StopFlag) -> None:
        """A chunk is short: it is not stopped."""

    def run(self, operator: RowOperator, table: pa.Table) -> Outcome:
        """The operator's outcome, in this thread or in the processes."""
        if self._worth_it:
            return self._processes.run(operator, table)
        started = time.thread_time()
        outcome = self._inline.run(operator, table)
        with self._lock:
            self._left -= 1
            self._worth_it = (time.thread_time() - started) * self._left > _WORTH_PROCESSES_S
        return outcome

    def close(self) -> None:
        """Frees what the operator holds; ends the processes, where there are any."""
        self._inline.close()
        self._processes.close()
