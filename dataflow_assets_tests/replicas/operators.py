"""Operators with faults, for replicas in this process and on Ray."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from pydantic import Field

from dataflow_assets.batch import Schema, arrow_field, column_of, rows_of
from dataflow_assets.engines.replicas.in_process import ReplicaCrash
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Outcome, Params, RowOperator


class FaultParams(Params):
    crash_always: Sequence[int] = ()
    crash_once: Sequence[int] = ()
    raise_on: Sequence[int] = ()
    markers: str = Field("", description="Folder in which a row that crashed once is noted.")
    seconds_a_row: float = 0.0
    dear_rows: Sequence[int] = ()
    dear_s: float = 0.0
    broken: str = ""
    log: str = ""


class Score(RowOperator):
    """Adds `score`, the length of `text` plus `id`, unless the row has a fault."""

    name = "made_score"
    Params = FaultParams

    def __init__(self, params: FaultParams | None = None) -> None:
        super().__init__(params)
        if self.params.broken == "config":
            raise ConfigError("the model is missing")
        if self.params.broken == "raise":
            raise FileNotFoundError("weights.bin")
        if self.params.broken == "die":
            self.crash()

    def reads(self) -> list[str]:
        return ["id", "text"]

    def writes(self) -> Schema:
        return {"score": "int64", "process": "int64"}

    def crash(self) -> None:
        os._exit(1)

    def apply(self, table: pa.Table) -> Outcome:
        scores = []
        for row in rows_of(table):
            scores.append(len(str(row["text"])) + self._checked(row["id"]))
            time.sleep(
                self.params.dear_s if row["id"] in self.params.dear_rows else self.params.seconds_a_row
            )
        if self.params.log:
            logging.getLogger("scorer").warning(self.params.log)
        scored = table.append_column(arrow_field("score", "int64"), column_of(scores, "int64"))
        processes = column_of([os.getpid()] * table.num_rows, "int64")
        return Outcome(scored.append_column(arrow_field("process", "int64"), processes))

    def _checked(self, id_: int) -> int:
        if id_ in self.params.raise_on:
            raise ValueError(f"row {id_} is bad")
        if id_ in self.params.crash_always or (id_ in self.params.crash_once and self._is_first(id_)):
            self.crash()
        return id_

    def _is_first(self, id_: int) -> bool:
        try:
            (Path(self.params.markers) / str(id_)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class ScoreHere(Score):
    """The same where the replica is a thread; `crashed` holds the rows that crashed once."""

    def __init__(self, params: FaultParams, crashed: set[int]) -> None:
        self._crashed = crashed
        super().__init__(params)

    def crash(self) -> None:
        raise ReplicaCrash

    def _is_first(self, id_: int) -> bool:
        is_first = id_ not in self._crashed
        self._crashed.add(id_)
        return is_first


def maker(**faults: object) -> Callable[[], ScoreHere]:
    """What makes the operator in each replica of this process."""
    crashed: set[int] = set()
    return lambda: ScoreHere(FaultParams(**faults), crashed)  # pyright: ignore[reportArgumentType]
