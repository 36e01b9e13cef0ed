"""The state of a dataset-scope step as work: a summary of each batch, and the verdict on each."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from dataflow_assets.control import StopFlag
from dataflow_assets.errors import MissingBatch
from dataflow_assets.fingerprints import hash_of, origin_of
from dataflow_assets.io.batch_stream import (
    NOTHING_HANDED,
    Ahead,
    BatchStream,
    Committed,
    Handed,
    Ready,
    Work,
    alone,
    commit_in_order,
)
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.operators.operator import DatasetOperator, Outcome, Summaries
from dataflow_assets.step_input import StepInput, committed_record
from dataflow_assets.step_work import StepWork


@dataclass(frozen=True)
class StateWork:
    """The state of a dataset-scope step: a summary of each batch, and the verdict on each.

    `keys` are all batches of the pipeline in partition order; a parent that lacks one is refused.
    """

    work: StepWork
    keys: Sequence[str]
    reuse: bool = True
    ahead: Ahead = field(default_factory=Ahead)

    @property
    def operator(self) -> DatasetOperator:
        """The step's operator."""
        assert isinstance(self.work.operator, DatasetOperator)
        return self.work.operator

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Summarizes new and changed batches, then decides; gives the summaries.

        Raises MissingBatch, Stopped.
        """
        yield from self.summaries(self.keys).commit_all(stop)
        fingerprint = self._fingerprint()
        if self.reuse and self._decided(fingerprint):
            return
        # The decision is the one thing that grows with all rows: first give back what batches used.
        pa.default_memory_pool().release_unused()
        verdicts = self.operator.decide(self._decided_from())
        tasks = (partial(self._verdict, key, table, fingerprint) for key, table in verdicts)
        for _verdict in commit_in_order(alone(self.work.verdicts, tasks), 1, stop):
            pass  # counted once, as summaries
        for folder in (self.work.summaries, self.work.verdicts):
            folder.remove_all_but(set(self.keys))

    def _decided_from(self) -> Summaries:
        if self.operator.regroups:
            return _ParentBatches(self.work.input, self.keys)
        return _StoredSummaries(self.work.summaries, self.keys)

    def is_done(self) -> bool:
        """Whether every summary and verdict is that of the parents' batches as they are now."""
        try:
            stream = self.summaries(self.keys)
            summarized = all(
                (record := self.work.summaries.record(key)) is not None
                and record.fingerprint == stream.fingerprint(key, NOTHING_HANDED)
                for key in self.keys
            )
            return summarized and self._decided(self._fingerprint())
        except MissingBatch:
            return False

    def summaries(self, keys: Sequence[str]) -> BatchStream:
        """The summaries of these batches, lazily."""
        return BatchStream(
            f"{self.work.name}_state",
            self.work.summaries,
            keys,
            self._summary_fingerprint,
            self._summarize,
            self.work.threads,
            self.reuse,
            parents=frozenset(self.work.input.parents),
            ahead=self.ahead,
        )

    def _summary_fingerprint(self, key: str, handed: Handed) -> str:
        source = self.work.input
        return hash_of(
            [self.work.code_version, "summary", list(source.hashes(key, handed).values()), source.columns]
        )

    def _summarize(self, key: str, fingerprint: str, handed: Handed) -> Work:
        started = time.time()
        inputs = self.work.input.hashes(key, handed)
        table = self.work.input.read(key, handed).table
        self.operator.check_ready()
        summary = self.operator.summarize(table)
        return Work(Outcome(summary), origin_of(self.operator, fingerprint, table.num_rows, inputs, started))

    def _fingerprint(self) -> str:
        """What the verdicts are made of: all summaries in order."""
        hashes = [
            committed_record(self.work.name, self.work.summaries, key).content_hash for key in self.keys
        ]
        return hash_of([self.work.code_version, "verdict", list(self.keys), hashes])

    def _decided(self, fingerprint: str) -> bool:
        records = map(self.work.verdicts.record, self.keys)
        return all(record is not None and record.fingerprint == fingerprint for record in records)

    def _verdict(self, key: str, table: pa.Table, fingerprint: str) -> Ready:
        origin = origin_of(self.operator, fingerprint, table.num_rows, {}, time.time())
        return self.work.verdicts.prepare(key, Outcome(table), origin)


@dataclass(frozen=True)
class _StoredSummaries:
    folder: StepFolder
    keys: Sequence[str]

    def __iter__(self) -> Iterator[tuple[str, pa.Table]]:
        for key in self.keys:
            table = self.folder.read(key)
            assert table is not None
            yield key, table


@dataclass(frozen=True)
class _ParentBatches:
    """The rows themselves, for an operator that regroups them."""

    input: StepInput
    keys: Sequence[str]

    def __iter__(self) -> Iterator[tuple[str, pa.Table]]:
        for key in self.keys:
            yield key, self.input.read(key).table
