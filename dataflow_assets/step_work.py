"""What one step does with one batch: reads its parents, runs the operator, says what it was made of."""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataflow_assets.batch import ROW_ID, arrow_field
from dataflow_assets.control import StopFlag
from dataflow_assets.engines.calls import CallEngine
from dataflow_assets.engines.engine import Engine, InlineEngine, check_law
from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.errors import MissingBatch, UnwritableValue
from dataflow_assets.failed_queue.edits import StepEdits
from dataflow_assets.io.batch_stream import (
    NOTHING_HANDED,
    Ahead,
    BatchStream,
    Committed,
    Handed,
    Ready,
    Work,
    alone,
    as_wanted,
    commit_in_order,
)
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.formats import Format, unfit_numbers
from dataflow_assets.io.step_folder import Origin, StepFolder
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.operators.operator import (
    REJECT_REASON,
    DatasetOperator,
    Operator,
    Outcome,
    RowErrors,
    RowOperator,
)
from dataflow_assets.serving.asking import Asking

_WORTH_PROCESSES_S = 2.0


class InputRows(NamedTuple):
    """What a step reads of one batch: its rows, and those that a join left without a partner."""

    table: pa.Table
    unmatched: pa.Table | None


@dataclass(frozen=True)
class StepInput:
    """The batches of a step's parents; several parents are joined on `row_id`.

    `columns` says for a join from which parent each column is taken.
    """

    parents: Mapping[str, StepFolder]
    columns: Mapping[str, str] | None = None

    def hashes(self, key: str, handed: Handed = NOTHING_HANDED) -> dict[str, str]:
        """The content hash of the batch in each parent. Raises MissingBatch."""
        return {
            name: handed[name].content_hash if name in handed else _committed(name, folder, key).content_hash
            for name, folder in self.parents.items()
        }

    def read(self, key: str, handed: Handed = NOTHING_HANDED) -> InputRows:
        """The rows, in the order of the first parent. Raises MissingBatch, CorruptFile."""
        tables = {}
        for name, folder in self.parents.items():
            table = handed[name].table if name in handed else None
            table = folder.read(key) if table is None else table
            assert table is not None
            tables[name] = table
        if self.columns is None:
            return InputRows(next(iter(tables.values())), None)
        return joined(tables, self.columns)


def _committed(name: str, folder: StepFolder, key: str) -> CommitRecord:
    record = folder.record(key)
    if record is None:
        raise MissingBatch(
            f"batch {key!r} of step {name!r} is not committed in {folder.path}; materialize {name!r} first"
        )
    return record


def joined(tables: Mapping[str, pa.Table], columns: Mapping[str, str]) -> InputRows:
    """The rows that every table has, each column from the table that `columns` names.

    A row that a table lacks is unmatched, with the reason `missing_in_<step>`.
    """
    names = list(tables)
    ids = {name: set(table[ROW_ID].to_pylist()) for name, table in tables.items()}
    common = set.intersection(*ids.values())
    first = tables[names[0]]
    kept = first.filter(pc.is_in(first[ROW_ID], pa.array(sorted(common), pa.large_string())))
    arrays, fields = [], []
    for column, parent in columns.items():
        table = tables[parent]
        positions = pc.index_in(kept[ROW_ID], table[ROW_ID])
        arrays.append(table[column].take(positions))
        fields.append(table.schema.field(column))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return InputRows(table, _unmatched(tables, ids, common))


def _unmatched(
    tables: Mapping[str, pa.Table], ids: Mapping[str, set[str]], common: set[str]
) -> pa.Table | None:
    parts, seen = [], set(common)
    for table in tables.values():
        positions = [i for i, row_id in enumerate(table[ROW_ID].to_pylist()) if row_id not in seen]
        if not positions:
            continue
        rows = table.take(pa.array(positions, pa.int64()))
        row_ids = rows[ROW_ID].to_pylist()
        reasons = [f"missing_in_{_first_lacking(ids, row_id)}" for row_id in row_ids]
        parts.append(
            rows.append_column(arrow_field(REJECT_REASON, "string"), pa.array(reasons, pa.large_string()))
        )
        seen.update(row_ids)
    return pa.concat_tables(parts, promote_options="default") if parts else None


def _first_lacking(ids: Mapping[str, set[str]], row_id: str) -> str:
    return next(name for name, present in ids.items() if row_id not in present)


def operator_fingerprint(operator: Operator) -> str:
    """The hash of what an operator does: name, version, parameters, and its own identity."""
    parts = [operator.name, operator.version, operator.fingerprint_of_params(), operator.identity()]
    return hash_of(parts)


def origin_of(
    operator: Operator,
    fingerprint: str,
    rows_in: int,
    inputs: Mapping[str, str],
    started_at: float,
    usage: Mapping[str, float] = {},
) -> Origin:
    """Where a batch that this operator made comes from."""
    code = operator_fingerprint(operator)
    return Origin(operator.name, operator.version, code, fingerprint, rows_in, inputs, started_at, usage)


def hash_of(value: object) -> str:
    """The hash of a JSON value, whatever the order of its keys."""
    return xxhash.xxh3_128_hexdigest(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


@dataclass(frozen=True)
class StepWork:
    """One step of a pipeline, bound to its files: what it reads, its operator, how many workers.

    `workers` None means the machine's cores, with processes only where they pay. `asking` is what a
    step of calls to a model needs.
    """

    name: str
    operator: Operator
    input: StepInput
    folder: StepFolder
    summaries: StepFolder
    verdicts: StepFolder
    workers: int | None = None
    chunk_rows: int | None = None
    asking: Asking | None = None

    @cached_property
    def code_version(self) -> str:
        """The hash of what the operator does."""
        return operator_fingerprint(self.operator)

    @property
    def threads(self) -> int:
        """How many batches are in hand at a time."""
        if self.asking is not None:
            return self.asking.batches_in_hand
        return self.workers or os.cpu_count() or 1

    @cached_property
    def edits(self) -> StepEdits:
        """The values that were put right by hand; they are read instead of the parents' values."""
        return StepEdits.beside(self.folder)

    def fingerprint(self, key: str, handed: Handed = NOTHING_HANDED, edits: str | None = None) -> str:
        """What the committed batch would be made of. Raises MissingBatch where a parent lacks it.

        `edits` is the hash of other edits than those that are there now.
        """
        parts = [
            self.code_version,
            list(self.input.hashes(key, handed).values()),
            self.input.columns,
        ]
        if isinstance(self.operator, DatasetOperator):
            parts.append(_committed(f"{self.name}_state", self.verdicts, key).content_hash)
        edits = self.edits.hash(key) if edits is None else edits
        if edits:
            parts.append(["edits", edits])
        return hash_of(parts)

    def rows(self, key: str, handed: Handed = NOTHING_HANDED) -> InputRows:
        """What the step reads of a batch, edits included. Raises MissingBatch, CorruptFile, RunError."""
        rows = self.input.read(key, handed)
        return rows._replace(table=self.edits.applied(key, rows.table))

    def is_done(self, key: str) -> bool:
        """Whether the batch is committed and made of what it would be made of now."""
        try:
            record = self.folder.record(key)
            return (
                record is not None
                and record.fingerprint == self.fingerprint(key)
                and as_wanted(self.folder, record) is record
            )
        except MissingBatch:
            return False

    def stream(
        self,
        keys: Sequence[str],
        reuse: bool = True,
        followers: Sequence[BatchStream] = (),
        ahead: Ahead | None = None,
    ) -> BatchStream:
        """The batches of these keys, lazily, and those of the steps that follow at once."""
        engine = self.engine(len(keys), reuse)
        return BatchStream(
            self.name,
            self.folder,
            keys,
            self.fingerprint,
            partial(self._compute, engine),
            self.threads,
            reuse,
            engine.close,
            engine.begin,
            frozenset(self.input.parents),
            followers,
            ahead or Ahead(),
        )

    def engine(self, batches: int, reuse: bool = True) -> Engine | CallEngine:
        """What runs the operator on so many batches; without `reuse` models are asked anew."""
        if self.asking is not None:
            asking = replace(self.asking, use_ledger=reuse)
            return CallEngine(asking.client, asking.rows_in_hand)
        if self.threads == 1 or self.operator.releases_gil or isinstance(self.operator, DatasetOperator):
            return InlineEngine()
        processes = ProcessEngine(self.threads, self.chunk_rows)
        return processes if self.workers else _WhereItPays(processes, batches)

    def _compute(self, engine: Engine | CallEngine, key: str, fingerprint: str, handed: Handed) -> Work:
        started = time.time()
        inputs = self.inputs(key, handed)
        rows = self.rows(key, handed)
        outcome, usage = self.outcome(engine, key, rows.table)
        rows_in = rows.table.num_rows
        if rows.unmatched is not None:
            rows_in += rows.unmatched.num_rows
            outcome = outcome._replace(rejected=_both(outcome.rejected, rows.unmatched))
        return Work(outcome, origin_of(self.operator, fingerprint, rows_in, inputs, started, usage))

    def inputs(self, key: str, handed: Handed = NOTHING_HANDED) -> dict[str, str]:
        """The content hashes of all that the batch is made of, by the names of the parents' assets."""
        inputs = self.input.hashes(key, handed)
        if isinstance(self.operator, DatasetOperator):
            state = f"{self.name}_state"
            inputs[state] = _committed(state, self.verdicts, key).content_hash
        return inputs

    def outcome(
        self, engine: Engine | CallEngine, key: str, table: pa.Table
    ) -> tuple[Outcome, dict[str, float]]:
        """What became of these rows of a batch, and what calls to models took. Raises ConservationError."""
        outcome, usage = self._outcome(engine, key, table)
        check_law(self.operator, table, outcome, f"step {self.name!r}, batch {key!r}")
        return without_unfit_numbers(table, outcome, self.folder.format), usage

    def _outcome(
        self, engine: Engine | CallEngine, key: str, table: pa.Table
    ) -> tuple[Outcome, dict[str, float]]:
        if isinstance(engine, CallEngine):
            assert isinstance(self.operator, LLMOperator)
            outcome, usage = engine.run(self.operator, table)
            return outcome, asdict(usage)
        if isinstance(self.operator, DatasetOperator):
            verdict = self.verdicts.read(key)
            assert verdict is not None
            return self.operator.apply_verdict(table, verdict), {}
        assert isinstance(self.operator, RowOperator)
        return engine.run(self.operator, table), {}


def without_unfit_numbers(rows: pa.Table, outcome: Outcome, format: Format) -> Outcome:
    """The outcome with the rows failed whose new number the step's format does not have.

    A child of a split row is not failed for its parent: the format then refuses the batch.
    """
    errors = RowErrors.none()
    kept = outcome.kept
    unfit_ids: set[str] = set()
    for unfit in unfit_numbers(kept, format):
        for position in pc.indices_nonzero(unfit.rows).to_pylist():
            row_id = kept[ROW_ID][position].as_py()
            source = pc.index(rows[ROW_ID], row_id).as_py()
            if source < 0 or row_id in unfit_ids:
                continue
            unfit_ids.add(row_id)
            value = kept[unfit.column][position].as_py()
            errors.add(source, UnwritableValue(f"column {unfit.column!r} holds {value}; {unfit.reason}"))
    if not unfit_ids:
        return outcome
    fits = pc.invert(pc.is_in(kept[ROW_ID], pa.array(sorted(unfit_ids), pa.large_string())))
    failed = errors.failed_rows(rows)
    assert failed is not None
    return outcome._replace(kept=kept.filter(fits), failed=_both(outcome.failed, failed))


def _both(first: pa.Table | None, second: pa.Table) -> pa.Table:
    return second if first is None else pa.concat_tables([first, second], promote_options="default")


class _WhereItPays:
    """Runs inline until a batch has shown that the rest is worth the start of processes."""

    def __init__(self, processes: ProcessEngine, batches: int) -> None:
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
        outcome = operator.apply(table)
        with self._lock:
            self._left -= 1
            self._worth_it = (time.thread_time() - started) * self._left > _WORTH_PROCESSES_S
        return outcome

    def close(self) -> None:
        """Ends the processes, where there are any."""
        self._processes.close()


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
        verdicts = self.operator.decide(_StoredSummaries(self.work.summaries, self.keys))
        tasks = (partial(self._verdict, key, table, fingerprint) for key, table in verdicts)
        for _verdict in commit_in_order(alone(self.work.verdicts, tasks), 1, stop):
            pass  # counted once, as summaries
        for folder in (self.work.summaries, self.work.verdicts):
            folder.remove_all_but(set(self.keys))

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
        summary = self.operator.summarize(table)
        return Work(Outcome(summary), origin_of(self.operator, fingerprint, table.num_rows, inputs, started))

    def _fingerprint(self) -> str:
        """What the verdicts are made of: all summaries in order."""
        hashes = [_committed(self.work.name, self.work.summaries, key).content_hash for key in self.keys]
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
