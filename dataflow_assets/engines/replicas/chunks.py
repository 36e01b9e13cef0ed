"""Divides batches into chunks: how many rows at a time, what is done again, and the order of the results."""

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.engines.outcomes import joined_outcomes
from dataflow_assets.operators.operator import Outcome

MAX_ATTEMPTS = 3
TARGET_S = 0.25
_LEAST_S = 0.02
_FIRST_ROWS = 4
_GROWTH = 4
_LOOK_BACK = 8
_LOG_LINES = 20


class BatchDone(NamedTuple):
    """The outcome of a batch, and what is told of it: chunks, deaths, seconds of work, lines of the log."""

    outcome: Outcome
    notes: Mapping[str, int | float | str]


class ChunkSize:
    """How many rows a chunk has: a fixed number, or so many that it is about `TARGET_S` of work.

    What a row costs is judged by the last chunks; the first are small. Near the end of the rows in
    hand chunks become smaller, so that all replicas end at about the same time.
    """

    def __init__(self, fixed: int | None, replicas: int) -> None:
        self._fixed = fixed
        self._replicas = replicas
        self._last: deque[tuple[int, float]] = deque(maxlen=_LOOK_BACK)

    def rows(self, left: int) -> int:
        """The rows of the next chunk, where `left` rows of the batches in hand are not given out."""
        if self._fixed is not None:
            return self._fixed
        if not self._last:
            return _FIRST_ROWS
        wanted = min(TARGET_S / self._row_s(), _GROWTH * max(rows for rows, _ in self._last))
        share = -(-left // (2 * self._replicas))
        return max(1, int(min(wanted, max(share, _LEAST_S / self._row_s()))))

    def seconds(self, rows: int) -> float:
        """How long a chunk of so many rows will take, as far as is known; 0 before the first is done."""
        return self._row_s() * rows if self._last else 0.0

    def took(self, rows: int, seconds: float) -> None:
        """Learns what a chunk took."""
        if rows:
            self._last.append((rows, seconds))

    def _row_s(self) -> float:
        """Seconds a row, of the last chunks."""
        return max(1e-6, sum(seconds for _, seconds in self._last) / sum(rows for rows, _ in self._last))


@dataclass(eq=False)
class BatchInHand:
    """A batch that is being done: which rows are given out, and the outcomes that came back."""

    table: pa.Table
    future: Future[BatchDone] = field(default_factory=Future)
    given: int = 0
    chunks: int = 0
    redone: int = 0
    deaths: int = 0
    seconds: float = 0.0
    log: list[str] = field(default_factory=list)
    _outcomes: dict[int, Outcome] = field(default_factory=dict)
    _rows_done: int = 0

    @property
    def left(self) -> int:
        """How many rows are not given out yet."""
        return self.table.num_rows - self.given

    @property
    def has_begun(self) -> bool:
        """Whether rows were given out."""
        return self.given > 0

    def next_chunk(self, rows: int) -> "Chunk":
        """The next rows, which are given out by that."""
        chunk = Chunk(self, self.given, min(rows, self.left))
        self.given += chunk.rows
        return chunk

    def add(self, chunk: "Chunk", outcome: Outcome) -> None:
        """Takes the outcome of a chunk; with the last one the batch is done."""
        self.chunks += 1
        self._outcomes[chunk.start] = outcome
        self._rows_done += chunk.rows
        if self._rows_done == self.table.num_rows:
            ordered = joined_outcomes(self._outcomes[start] for start in sorted(self._outcomes))
            self.future.set_result(BatchDone(ordered, self._notes()))

    def noted(self, seconds: float, log: Sequence[str]) -> None:
        """Counts the work of a replica for the batch."""
        self.seconds += seconds
        self.log += log[: _LOG_LINES - len(self.log)]

    def _notes(self) -> dict[str, int | float | str]:
        notes: dict[str, int | float | str] = {
            "chunks": self.chunks,
            "replica_seconds": round(self.seconds, 3),
            "replica_deaths": self.deaths,
            "redone_chunks": self.redone,
            "replica_log": "\n".join(self.log),
        }
        return {name: value for name, value in notes.items() if value}


@dataclass(eq=False)
class Chunk:
    """Some rows of a batch on their way.

    `deaths` counts the replicas that died while doing it, `allowed` is how many may. `since` is when
    it came to its replica, or to the head of it.
    """

    batch: BatchInHand
    start: int
    rows: int
    deaths: int = 0
    allowed: int = MAX_ATTEMPTS
    is_part_of_suspect: bool = False
    since: float = 0.0

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self.batch.table.slice(self.start, self.rows)

    @property
    def is_suspect(self) -> bool:
        """Whether it may end its replica: it is then done with nothing queued behind it."""
        return self.deaths > 0 or self.is_part_of_suspect

    def halves(self) -> "list[Chunk]":
        """Both halves of a chunk that was tried often enough; one row alone has all attempts again."""
        half = self.rows // 2
        parts = [(self.start, half), (self.start + half, self.rows - half)]
        return [Chunk(self.batch, start, rows, 0, _allowed(rows), True) for start, rows in parts]


def _allowed(rows: int) -> int:
    return MAX_ATTEMPTS if rows == 1 else 1
