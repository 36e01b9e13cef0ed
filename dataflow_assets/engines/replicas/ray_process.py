"""What runs in the process of a Ray replica: one instance of the operator, and its log."""

import logging
import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from dataflow_assets.engines.replicas.host import ChunkDone, ReplicaInfo, done_here
from dataflow_assets.operators.gpu_share import set_share_of_gpu
from dataflow_assets.operators.operator import RowOperator

_LOG_LINES = 20
_LINE_CHARS = 500


class ReplicaProcess:
    """The actor. Whatever it says of GPUs is said before anything is imported that looks at them."""

    def __init__(self, path: Sequence[str], num_gpus: float) -> None:
        if num_gpus:
            set_share_of_gpu(num_gpus)
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        sys.path += [folder for folder in path if folder not in sys.path and Path(folder).exists()]
        self._log = _LastLines()
        logging.getLogger().addHandler(self._log)

    def where(self) -> ReplicaInfo:
        """The process, its node, and its GPUs."""
        import ray

        context = ray.get_runtime_context()
        gpus = tuple(map(str, context.get_accelerator_ids().get("GPU", [])))
        return ReplicaInfo(os.getpid(), context.get_node_id(), gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))

    def make(self, operator: bytes) -> ReplicaInfo:
        """Makes the operator and loads its model."""
        kind, params = pickle.loads(operator)
        self._operator: RowOperator = kind(params)
        self._operator.warm_up()
        return self.where()

    def do(self, rows: bytes) -> ChunkDone:
        """What became of a chunk."""
        started = perf_counter()
        outcome = done_here(self._operator, rows)
        return ChunkDone(outcome, perf_counter() - started, self._log.taken())


class _LastLines(logging.Handler):
    """Keeps warnings and errors until they are taken, so many at most."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the record as a line; one that cannot be formatted is told as `logging` tells it."""
        if len(self._lines) < _LOG_LINES:
            try:
                line = f"{record.levelname} {record.name}: {record.getMessage()}"
            except Exception:  # noqa: BLE001  whoever logs does not fail by it: no row is at fault
                self.handleError(record)
                return
            self._lines.append(line[:_LINE_CHARS])

    def taken(self) -> tuple[str, ...]:
        """The lines since they were taken last."""
        lines, self._lines = self._lines, []
        return tuple(lines)
