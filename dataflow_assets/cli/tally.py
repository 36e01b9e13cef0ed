"""What one asset did so far in a run, and how long the rest will take."""

import time
from dataclasses import dataclass

from dataflow_assets.progress import BatchDone, RowAnswered


@dataclass
class Tally:
    """From the asset's start to its last batch or row. Rows, drops, failures and calls are those of this run.

    `batches_wanted` is 0 where it is not known. `rows_wanted` is known of a step that asks a model:
    its rows are counted one by one, those of the batch in hand too.
    """

    name: str
    began: float
    last: float
    batches_wanted: int = 0
    rows_wanted: int | None = None
    batches: int = 0
    made: int = 0
    reused_rows: int = 0
    committed_rows: int = 0
    answered_rows: int = 0
    rejected: int = 0
    committed_failed: int = 0
    answered_failed: int = 0
    committed_tokens: float = 0
    answered_tokens: float = 0
    committed_cost: float = 0
    answered_cost: float = 0
    asks_a_model: bool = False
    is_over: bool = False
    shown: float = 0.0

    def add(self, done: BatchDone) -> None:
        """Counts a batch."""
        self.last = time.monotonic()
        self.batches += 1
        record = done.record
        if done.reused:
            self.reused_rows += record.rows_in
            return
        self.made += 1
        self.committed_rows += record.rows_in
        self.rejected += sum(record.rejected.values())
        self.committed_failed += sum(record.failed.values())
        self.asks_a_model = self.asks_a_model or bool(record.usage)
        self.committed_tokens += record.usage.get("tokens_in", 0) + record.usage.get("tokens_out", 0)
        self.committed_cost += record.usage.get("cost", 0)

    def add_row(self, row: RowAnswered) -> None:
        """Counts a row whose batch is still in hand."""
        self.last = time.monotonic()
        self.asks_a_model = True
        self.answered_rows += 1
        self.answered_failed += row.has_failed
        self.answered_tokens += row.usage.tokens_in + row.usage.tokens_out
        self.answered_cost += row.usage.cost

    @property
    def rows(self) -> int:
        """Rows that went through, those of the batches in hand too where each is counted."""
        return max(self.committed_rows, self.answered_rows)

    @property
    def failed(self) -> int:
        """Rows that failed."""
        return max(self.committed_failed, self.answered_failed)

    @property
    def tokens(self) -> float:
        """Tokens in and out."""
        return max(self.committed_tokens, self.answered_tokens)

    @property
    def cost(self) -> float:
        """In the currency of the prices."""
        return max(self.committed_cost, self.answered_cost)

    @property
    def rows_per_s(self) -> float:
        """Rows a second from the asset's start to its last batch or row."""
        elapsed_s = self.last - self.began
        return self.rows / elapsed_s if elapsed_s > 0 else 0.0

    @property
    def share(self) -> float | None:
        """How much of the asset is done, 0 to 1; None where nobody knows how much there is."""
        if self.is_over and not self.batches_wanted:
            return 1.0
        if self.rows_wanted and self.batches < self.batches_wanted:
            return min(1.0, (self.reused_rows + self.rows) / self.rows_wanted)
        return min(1.0, self.batches / self.batches_wanted) if self.batches_wanted else None

    @property
    def seconds_left(self) -> float | None:
        """At the speed so far; None where it is not known, or nothing is left."""
        elapsed_s = self.last - self.began
        if self.rows_wanted and self.rows:
            left = self.rows_wanted - self.reused_rows - self.rows
            return elapsed_s / self.rows * left if left > 0 and self.batches < self.batches_wanted else None
        if not self.made or self.batches >= self.batches_wanted:
            return None
        return elapsed_s / self.made * (self.batches_wanted - self.batches)
