"""Does failed rows again and puts what becomes of them in their place; then goes on like a run."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import NamedTuple

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from dagster import DagsterInstance

from dataflow_assets.batch import ROW_ID
from dataflow_assets.checks import failed_gates
from dataflow_assets.control import LOCK_FILE, StopFlag, held_signals, pipeline_lock
from dataflow_assets.engines.whole_batches import MadeHere
from dataflow_assets.errors import MissingBatch
from dataflow_assets.failed_queue.merge import merged, with_attempts
from dataflow_assets.failed_queue.selection import Which, stored_failed
from dataflow_assets.fingerprints import origin_of
from dataflow_assets.home import dagster_errors
from dataflow_assets.io.batch_stream import BatchStream, Handed, Work
from dataflow_assets.io.replacement import ReplacedFolder
from dataflow_assets.io.samples import samples_of
from dataflow_assets.io.step_folder import PARTS
from dataflow_assets.kept_connections import kept_connections
from dataflow_assets.mirror import register_batches, repair_mirror
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.planning import is_up_to_date
from dataflow_assets.plugins.told import ToldPlugins
from dataflow_assets.run import run_pipeline
from dataflow_assets.running_task import running_task
from dataflow_assets.status import summed
from dataflow_assets.step_work import AnyEngine, StepWork
from dataflow_assets.task_state import TaskStore

PutBack = Mapping[str, Mapping[str, frozenset[str]]]
"""The rows that were just put back, by step and batch."""


@dataclass
class StepRetried:
    """What became of the failed rows of a step: `tried` = `done` + `rejected` + `failed`.

    `parked` rows were left alone. The batches in `stale` are made again as a whole, for what they are
    made of has changed: by this command, or by `run` where the step itself is `changed`, which is its
    operator, its parameters or its model.
    """

    step: str
    tried: int = 0
    rejected: int = 0
    failed: int = 0
    parked: int = 0
    batches: int = 0
    stale: list[str] = field(default_factory=list)
    changed: bool = False

    @property
    def done(self) -> int:
        """Rows that go on now."""
        return self.tried - self.rejected - self.failed

    def lines(self) -> Iterator[str]:
        """The same in words."""
        if self.tried:
            yield (
                f"{self.step}: {self.tried:,} rows in {self.batches:,} batches tried again: "
                f"{self.done:,} done, {self.rejected:,} rejected, {self.failed:,} failed"
            )
        if self.parked:
            yield f"{self.step}: {self.parked:,} rows are parked; --parked tries them too"
        if self.stale and self.changed:
            yield (
                f"{self.step}: its operator, parameters or model changed since; `dataflow-assets run` makes "
                f"{len(self.stale):,} batches again, failed rows included"
            )
        elif self.stale:
            yield f"{self.step}: {len(self.stale):,} batches are made again as a whole: their input changed"


@dataclass(frozen=True)
class Redo:
    """Rows of one batch to be done again, and the attempts that they had; rows put back count anew."""

    row_ids: frozenset[str]
    attempts: Mapping[str, int] = field(default_factory=dict)


class Redone(NamedTuple):
    """How many rows of a batch were done again, what became of them, and what their calls took."""

    rows: int
    outcome: Outcome
    usage: Mapping[str, float]


@dataclass(frozen=True)
class AsReadWork(PipelineWork):
    """A pipeline whose source stays as it was read last."""

    @classmethod
    def of(cls, work: PipelineWork) -> "AsReadWork":
        """The same pipeline."""
        return cls(**{each.name: getattr(work, each.name) for each in fields(work)})

    def source_is_current(self, any_format: bool = False) -> bool:
        """Nobody looks."""
        return True


def retry_failed(
    work: PipelineWork,
    instance: DagsterInstance,
    which: Which | None = None,
    put_back: PutBack | None = None,
    tell: Callable[[StepRetried], None] = lambda retried: None,
    run_id: str | None = None,
) -> list[StepRetried]:
    """Tries the failed rows that are meant, and those put back, again; then redoes what depends on them.

    Which batches those are, the fingerprints decide. The source is not read again, and steps that
    were changed are left to `run`. `tell` hears of each step that had such rows; `run_id` is the run
    that Dagster launched for this. Raises what `run_pipeline` raises; running it again goes on from
    the last committed batch.
    """
    for name in which.steps if which else ():
        work.pipeline.step(name)
    store = TaskStore(instance, work.layout.folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(dagster_errors(instance.root_directory, dg.DagsterInvalidInvocationError))
        store.raise_if_paused()
        died = stack.enter_context(pipeline_lock(work.layout.folder))
        task = stack.enter_context(running_task(store, work, run_id))
        stop = stack.enter_context(held_signals(task.stop))
        manifest = work.known_manifest()
        began = (work.layout.folder / LOCK_FILE).stat().st_mtime
        report = []
        for retried in _retried_steps(work, manifest.batches, which, put_back or {}, stop, task.told):
            tell(retried)
            report.append(retried)
        with kept_connections(instance):
            register_batches(instance, work.pipeline.name, manifest.batches)
            repair_mirror(work, instance, manifest, min(died or began, began))
        stop.raise_if_up()
        unchanged = _unchanged_steps(work, manifest.batches)
        if unchanged:
            every = len(unchanged) == len(work.pipeline.steps)
            run_pipeline(AsReadWork.of(work), instance, () if every else unchanged)
        task.is_complete = is_up_to_date(work, manifest.batches)
    return report


def _unchanged_steps(work: PipelineWork, keys: Sequence[str]) -> list[str]:
    """The steps that do what they did when their batches were made, like all that they depend on."""
    unchanged: list[str] = []
    for step in work.pipeline.ordered_steps:
        above = set(work.pipeline.parents(step)) - {SOURCE}
        if above <= set(unchanged) and not _is_changed(work.step(step), keys):
            unchanged.append(step.name)
    return unchanged


def _is_changed(step: StepWork, keys: Iterable[str]) -> bool:
    records = map(step.folder.record, keys)
    return any(record is not None and record.code_version != step.code_version for record in records)


def _retried_steps(
    work: PipelineWork,
    keys: Sequence[str],
    which: Which | None,
    put_back: PutBack,
    stop: StopFlag,
    told: ToldPlugins,
) -> Iterator[StepRetried]:
    """The steps in order, so that a step that depends on another's new rows is left to the run.

    Nothing is tried downstream of a blocking check that fails; the run says so.
    """
    dirty: dict[str, set[str]] = {}
    held: set[str] = set()
    for step in work.pipeline.ordered_steps:
        parents = work.pipeline.parents(step)
        if held & set(parents) or _is_held(work, {name: dirty[name] for name in parents if name != SOURCE}):
            held.add(step.name)
            continue
        bound = work.step(step)
        above = set().union(*(dirty.get(parent, set()) for parent in parents))
        state = work.state(step)
        if state is not None:
            dirty[step.name] = above if not above and state.is_done() else set(keys)
            continue
        wanted = which if which is not None and which.has_step(step.name) else None
        retried = _retried(bound, keys, above, wanted, put_back.get(step.name, {}), stop, told)
        if retried.tried or retried.parked or retried.stale:
            yield retried
        dirty[step.name] = above | {key for key in keys if not _is_current(bound, key)}


def _is_held(work: PipelineWork, parents: Mapping[str, set[str]]) -> bool:
    """Whether a blocking check of a step fails that is just above, whatever is made of its dirty batches."""
    return any(failed_gates(work, work.pipeline.step(name), dirty) for name, dirty in parents.items())


def _is_current(step: StepWork, key: str) -> bool:
    """Whether the batch is made of what it would be made of now; in which format does not matter."""
    record = step.folder.record(key)
    try:
        return record is not None and record.fingerprint == step.fingerprint(key)
    except MissingBatch:
        return False


def _retried(
    step: StepWork,
    keys: Iterable[str],
    stale: set[str],
    which: Which | None,
    put_back: Mapping[str, frozenset[str]],
    stop: StopFlag,
    told: ToldPlugins,
) -> StepRetried:
    retried = StepRetried(step.name)
    redo: dict[str, Redo] = {}
    for key in keys:
        wanted = _wanted(step, key, which, put_back.get(key, frozenset()), retried)
        if wanted is None:
            continue
        if key in stale or not _may_be_merged(step, key):
            retried.stale.append(key)
            retried.changed = retried.changed or _is_changed(step, [key])
        else:
            redo[key] = wanted
    if redo:
        done: dict[str, Redone] = {}
        with told.step(step.name, len(redo)):
            for committed in retry_stream(step, redo, done).commit_all(stop):
                redone = done.pop(committed.record.batch)
                told.retried(committed.record, *redone)
                _count(retried, redone.rows, redone.outcome)
    return retried


def _count(retried: StepRetried, rows: int, outcome: Outcome) -> None:
    retried.batches += 1
    retried.tried += rows
    retried.rejected += outcome.rejected.num_rows if outcome.rejected is not None else 0
    retried.failed += outcome.failed.num_rows if outcome.failed is not None else 0


def _wanted(
    step: StepWork, key: str, which: Which | None, put_back: frozenset[str], retried: StepRetried
) -> Redo | None:
    """The rows of a batch to be done again, if any; counts those that are parked."""
    if step.folder.record(key) is None:
        return None
    anew = put_back
    if not _is_current(step, key):
        anew = anew | step.edits.of(key).pending
    failed = stored_failed(step.folder, key) if which is not None else None
    attempts: dict[str, int] = {}
    if which is not None and failed is not None:
        meant = which.rows(failed)
        attempts = dict(zip(meant[ROW_ID].to_pylist(), meant["attempts"].to_pylist(), strict=True))
        if which.parked == "out":
            retried.parked += replace(which, parked="alone").rows(failed).num_rows
    row_ids = anew | attempts.keys()
    return Redo(row_ids, {i: n for i, n in attempts.items() if i not in anew}) if row_ids else None


def _may_be_merged(step: StepWork, key: str) -> bool:
    """Whether the rows that stay are still right: the batch differs by its edits at most."""
    record = step.folder.record(key)
    try:
        before = step.fingerprint(key, edits=step.edits.of(key).before)
        return record is not None and record.fingerprint in (step.fingerprint(key), before)
    except MissingBatch:
        return False


def retry_stream(step: StepWork, redo: Mapping[str, Redo], done: dict[str, Redone]) -> BatchStream:
    """The batches with these rows done again, lazily; `done` gets what became of the rows alone."""
    payoff = step.payoff(len(redo))
    engine = step.engine(payoff)
    folder = step.folder
    return BatchStream(
        step.name,
        ReplacedFolder(folder.path, folder.format, folder.whole, folder.allow_pickle),
        list(redo),
        lambda key, handed: step.fingerprint(key),
        partial(_redone, step, engine, redo, done),
        _in_hand(step, redo),
        reuse=False,
        close=engine.close,
        begin=engine.begin,
        maker=MadeHere(payoff),
    )


def _in_hand(step: StepWork, redo: Mapping[str, Redo]) -> int:
    """How many batches at a time; for a model so many that their few rows do not leave it idle."""
    if step.asking is None or not redo:
        return step.threads
    rows_a_batch = sum(len(each.row_ids) for each in redo.values()) / len(redo)
    return max(step.threads, min(len(redo), int(2 * step.asking.spec.concurrency / rows_a_batch) + 1))


def _redone(
    step: StepWork,
    engine: AnyEngine,
    redo: Mapping[str, Redo],
    done: dict[str, Redone],
    key: str,
    fingerprint: str,
    handed: Handed,
) -> Work:
    """The whole batch. The law holds for it, for it holds for the rows that stay and for the others."""
    started = time.time()
    record = step.folder.record(key)
    assert record is not None
    old = Outcome(*(step.folder.read(key, part, record) for part in PARTS))  # pyright: ignore[reportArgumentType]
    rows = step.rows(key).table
    again = rows.filter(pc.is_in(rows[ROW_ID], pa.array(sorted(redo[key].row_ids), pa.large_string())))
    outcome, usage, notes = step.outcome(engine, key, again)
    outcome = with_attempts(outcome, redo[key].attempts)
    done[key] = Redone(again.num_rows, outcome, usage)
    whole = merged(old, outcome, rows[ROW_ID], step.operator.splits, again[ROW_ID].to_pylist())
    usage = summed([record.usage, usage]) if usage or record.usage else {}  # pyright: ignore[reportArgumentType]
    counts = step.operator.counts(whole.kept)
    origin = origin_of(step.operator, fingerprint, record.rows_in, step.inputs(key), started, usage, counts)
    return Work(whole, origin, notes, samples_of(whole, rows))
