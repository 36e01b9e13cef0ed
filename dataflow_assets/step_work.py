"""What one step does with one batch: reads its parents, runs the operator, says what it was made of."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, places_where
from dataflow_assets.engines.calls import CallEngine
from dataflow_assets.engines.engine import Engine, InlineEngine, check_law
from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.engines.replicas.pool import ReplicaPool
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.engines.replicas.ray_host import RayHost
from dataflow_assets.engines.replicas.request import ReplicaRequest
from dataflow_assets.engines.where_it_pays import Payoff, WhereItPays
from dataflow_assets.engines.whole_batches import MadeHere, MadeInProcesses
from dataflow_assets.engines.worker_pool import WorkerPools
from dataflow_assets.errors import MissingBatch, UnwritableValue
from dataflow_assets.failed_queue.edits import StepEdits
from dataflow_assets.fingerprints import hash_of, operator_fingerprint, origin_of
from dataflow_assets.io.batch_stream import (
    NOTHING_HANDED,
    Ahead,
    BatchStream,
    Handed,
    Maker,
    Work,
    as_wanted,
)
from dataflow_assets.io.formats import Format, unfit_numbers
from dataflow_assets.io.samples import samples_of
from dataflow_assets.io.step_folder import NO_NOTES, Notes, StepFolder
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.operators.llm.outcome import RowDone
from dataflow_assets.operators.operator import (
    DatasetOperator,
    Operator,
    Outcome,
    RowErrors,
    RowOperator,
)
from dataflow_assets.profiles.profiler import Profiler
from dataflow_assets.progress import RowAnswered, tell_row
from dataflow_assets.serving.asking import Asking
from dataflow_assets.step_input import InputRows, StepInput, committed_record

AnyEngine = Engine | CallEngine | ReplicaPool


class Did(NamedTuple):
    """What became of rows, what calls to models took, and what is told of the work."""

    outcome: Outcome
    usage: Mapping[str, float] = {}
    notes: Notes = NO_NOTES


@dataclass(frozen=True)
class StepWork:
    """One step of a pipeline, bound to its files: what it reads, its operator, how many workers.

    `workers` None means the machine's cores, with processes only where they pay; they come from `pools`.
    `asking` is what a step of calls to a model needs, `replicas` what a step on Ray asks of the cluster
    of `ray`. `profiler` looks at each batch. `apart`: rows are done in worker processes from the first one
    on, also by a single one, so that a row that ends its process fails alone.
    """

    name: str
    operator: Operator
    input: StepInput
    folder: StepFolder
    summaries: StepFolder
    verdicts: StepFolder
    workers: int | None = None
    chunk_rows: int | None = None
    batch_rows: int = 10_000
    asking: Asking | None = None
    replicas: ReplicaRequest | None = None
    ray: RaySettings = field(default_factory=RaySettings)
    pools: WorkerPools = field(default_factory=WorkerPools)
    profiler: Profiler | None = None
    apart: bool = False

    @cached_property
    def code_version(self) -> str:
        """The hash of what the operator does."""
        return operator_fingerprint(self.operator)

    @property
    def threads(self) -> int:
        """How many batches are in hand at a time."""
        if self.asking is not None:
            return self.asking.batches_in_hand
        if self.replicas is not None:
            return self.replicas.batches_in_hand(self.batch_rows)
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
            parts.append(committed_record(f"{self.name}_state", self.verdicts, key).content_hash)
        edits = self.edits.hash(key) if edits is None else edits
        if edits:
            parts.append(["edits", edits])
        return hash_of(parts)

    def rows(self, key: str, handed: Handed = NOTHING_HANDED) -> InputRows:
        """What the step reads of a batch, edits included. Raises MissingBatch, CorruptFile, RunError."""
        rows = self.input.read(key, handed)
        return rows._replace(table=self.edits.applied(key, rows.table))

    def is_done(self, key: str, any_format: bool = False) -> bool:
        """Whether the batch is committed in its format, or any, and made of what it would be made of now."""
        try:
            record = self.folder.record(key)
            return (
                record is not None
                and record.fingerprint == self.fingerprint(key)
                and (any_format or as_wanted(self.folder, record) is record)
            )
        except MissingBatch:
            return False

    def stream(
        self,
        keys: Sequence[str],
        payoff: Payoff | None = None,
        reuse: bool = True,
        followers: Sequence[BatchStream] = (),
        ahead: Ahead | None = None,
        maker: Maker | None = None,
        hold_bytes: int | None = None,
    ) -> BatchStream:
        """The batches of these keys, lazily, and those of the steps that follow at once."""
        engine = self.engine(payoff or self.payoff(len(keys)), reuse)
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
            maker,
            self.profiler and self.profiler.look,
            hold_bytes,
        )

    @property
    def stays(self) -> bool:
        """Whether it is done from this process: calls to servers, replicas, a model in memory."""
        return self.asking is not None or self.replicas is not None or self.operator.heavy

    @property
    def holds_gil(self) -> bool:
        """Whether threads do not help it: it is then done in processes, where they pay."""
        return not self.stays and holds_gil(self.operator)

    def engine(self, payoff: Payoff, reuse: bool = True) -> AnyEngine:
        """What runs the operator, in processes once they pay; without `reuse` models are asked anew."""
        if self.asking is not None:
            asking = replace(self.asking, use_ledger=reuse)
            return CallEngine(asking.client, asking.rows_in_hand, self._tell_row)
        if self.replicas is not None:
            assert isinstance(self.operator, RowOperator)
            host = RayHost(self.name, self.operator, self.replicas, self.ray)
            return ReplicaPool(self.name, self.operator, host, self.replicas)
        if self.apart and not self.stays and isinstance(self.operator, RowOperator):
            return ProcessEngine(self.pools.of(self.threads), self.chunk_rows)
        if self.threads == 1 or not self.holds_gil:
            return InlineEngine()
        return WhereItPays(ProcessEngine(self.pools.of(self.threads), self.chunk_rows), payoff)

    def _tell_row(self, row: RowDone) -> None:
        tell_row(RowAnswered(self.name, isinstance(row.done, Exception), row.usage))

    def payoff(self, batches: int) -> Payoff:
        """Whether processes pay for so many batches: where a person gave `workers` they do."""
        return Payoff(batches, sure=self.workers is not None)

    def _compute(self, engine: AnyEngine, key: str, fingerprint: str, handed: Handed) -> Work:
        started = time.time()
        inputs = self.inputs(key, handed)
        rows = self.rows(key, handed)
        outcome, usage, notes = self.outcome(engine, key, rows.table)
        rows_in = rows.table.num_rows
        if rows.unmatched is not None:
            rows_in += rows.unmatched.num_rows
            outcome = outcome._replace(rejected=_both(outcome.rejected, rows.unmatched))
        counts = self.operator.counts(outcome.kept)
        origin = origin_of(self.operator, fingerprint, rows_in, inputs, started, usage, counts)
        return Work(outcome, origin, notes, samples_of(outcome, rows.table))

    def inputs(self, key: str, handed: Handed = NOTHING_HANDED) -> dict[str, str]:
        """The content hashes of all that the batch is made of, by the names of the parents' assets."""
        inputs = self.input.hashes(key, handed)
        if isinstance(self.operator, DatasetOperator):
            state = f"{self.name}_state"
            inputs[state] = committed_record(state, self.verdicts, key).content_hash
        return inputs

    def outcome(self, engine: AnyEngine, key: str, table: pa.Table) -> "Did":
        """What became of these rows of a batch.

        Raises ConfigError where a package is missing, ConservationError.
        """
        self.operator.check_ready()
        did = self._outcome(engine, key, table)
        check_law(self.operator, table, did.outcome, f"step {self.name!r}, batch {key!r}")
        return did._replace(outcome=without_unfit_numbers(table, did.outcome, self.folder.format))

    def _outcome(self, engine: AnyEngine, key: str, table: pa.Table) -> "Did":
        if isinstance(engine, CallEngine):
            assert isinstance(self.operator, LLMOperator)
            outcome, usage = engine.run(self.operator, table)
            return Did(outcome, asdict(usage))
        if isinstance(engine, ReplicaPool):
            done = engine.run(table)
            return Did(done.outcome, notes=done.notes)
        if isinstance(self.operator, DatasetOperator):
            verdict = self.verdicts.read(key)
            assert verdict is not None
            return Did(self.operator.apply_verdict(table, verdict))
        assert isinstance(self.operator, RowOperator)
        return Did(engine.run(self.operator, table))


def holds_gil(operator: Operator) -> bool:
    """Whether several threads do not make the operator faster."""
    return not (operator.releases_gil or operator.heavy or isinstance(operator, DatasetOperator))


def maker_for(works: Sequence[StepWork], batches: int, payoff: Payoff) -> Maker:
    """Where batches are made: in processes as a whole where all these steps allow it, and one gains by it.

    A step with `chunk_rows` has its batches cut; where there are fewer batches than workers all are.
    """
    may_go = not any(work.stays or work.chunk_rows or work.apart for work in works)
    threads = {work.threads for work in works}
    if may_go and len(threads) == 1 and any(work.holds_gil for work in works) and 1 < min(threads) <= batches:
        first = works[0]
        return MadeInProcesses(first.pools.of(first.threads), payoff)
    return MadeHere(payoff)


def without_unfit_numbers(rows: pa.Table, outcome: Outcome, format: Format) -> Outcome:
    """The outcome with the rows failed whose new number the step's format does not have.

    A child of a split row is not failed for its parent: the format then refuses the batch.
    """
    errors = RowErrors.none()
    kept = outcome.kept
    unfit_ids: set[str] = set()
    for unfit in unfit_numbers(kept, format):
        for position in places_where(unfit.rows).to_pylist():
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
