"""Where a pipeline stands: read from its records, never from memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dataflow_assets.checks import CheckResult, FailedGate, check_results
from dataflow_assets.control import is_locked
from dataflow_assets.errors import PauseCause
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.planning import plan_of
from dataflow_assets.sources.current import settings_hash
from dataflow_assets.sources.manifest import Manifest
from dataflow_assets.sources.notes import missing_columns
from dataflow_assets.task_state import State, TaskState, existing_state


@dataclass(frozen=True)
class StepStatus:
    """The sums over a step's committed batches. `stale` has batches made of other code or input than now;
    those that are stored in another format are up to date.

    `usage` has the calls to models of a step that asks one, see `serving.usage`; `checks` how its checks
    stand.
    """

    step: int
    name: str
    type: str
    batches_done: int
    batches_total: int
    rows_in: int
    rows_out: int
    rejected: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    stale: bool = False
    usage: dict[str, float] = field(default_factory=dict)
    checks: list[CheckResult] = field(default_factory=list)


@dataclass(frozen=True)
class PausedAt:
    """Who paused a pipeline, when (ISO 8601, UTC) and why, and how far its run had come."""

    who: str
    when: str
    why: str
    cause: PauseCause
    step: str | None
    batch: str | None


@dataclass(frozen=True)
class PipelineStatus:
    """`new`: nothing read; `running`: a process holds the lock; `partial`: batches are to do; `done`.

    `paused` and `failed`, for a run that ended with an error and left batches to do, are known from
    Dagster's storage; where there is no Dagster home, such a pipeline is `new` or `partial`. It is
    `failed` too while a blocking check fails. `why` says how it came to stand there.
    `left_out` names the files of the source's folders and globs that were not read, as no reader fits.
    `missing_columns` names what `source.columns` and `source.rename` ask for and no row of the source has.
    `leftover_steps` names what is left in the pipeline's folder of steps that it no longer has.
    """

    pipeline: str
    state: State
    rows_read: int
    steps: list[StepStatus]
    source_rejected: dict[str, int] = field(default_factory=dict)
    leftover_steps: list[str] = field(default_factory=list)
    paused: PausedAt | None = None
    why: str = ""
    left_out: list[str] = field(default_factory=list)
    missing_columns: list[str] = field(default_factory=list)

    @property
    def failed_rows(self) -> int:
        """Rows that wait in `_failed`, over all steps."""
        return sum(step.failed for step in self.steps)

    def as_json(self) -> dict:
        """The status as plain JSON values."""
        return asdict(self)


def status_of(work: PipelineWork) -> PipelineStatus:
    """The status now. Raises StorageError where records or the Dagster home cannot be read."""
    task = existing_state(work, Path.cwd())
    manifest = work.manifest()
    keys = manifest.batches if manifest else []
    steps = step_statuses(work, keys)
    gates = _failed_gates(work, keys)
    state = _state(work, bool(manifest), steps, task, gates)
    return PipelineStatus(
        work.pipeline.name,
        state,
        manifest.rows if manifest else 0,
        steps,
        summed(file.rejected for file in manifest.files) if manifest else {},
        work.layout.leftover_steps(len(steps)),
        _paused_at(task) if state == "paused" else None,
        _why(state, task, gates),
        manifest.skipped if manifest else [],
        _missing_columns(work, manifest),
    )


def _missing_columns(work: PipelineWork, manifest: Manifest | None) -> list[str]:
    """Those of the last reading; none where the source is to be read by other settings."""
    if manifest is None or manifest.settings != settings_hash(work.pipeline):
        return []
    return missing_columns(manifest, work.pipeline.source)


def step_statuses(work: PipelineWork, keys: Sequence[str]) -> list[StepStatus]:
    """What the records of these batches say of each step, without Dagster. Raises StorageError."""
    steps = []
    for number, step in enumerate(work.pipeline.ordered_steps, start=1):
        done, stale = _batches(work, step.name, keys)
        steps.append(
            StepStatus(
                step=number,
                name=step.name,
                type=step.type,
                batches_done=len(done) - stale,
                batches_total=len(keys),
                rows_in=sum(record.rows_in for record in done),
                rows_out=sum(record.rows_out for record in done),
                rejected=summed(record.rejected for record in done),
                failed=sum(sum(record.failed.values()) for record in done),
                stale=stale > 0,
                usage=usage_of(done),
                checks=check_results(work, step),
            )
        )
    return steps


def _failed_gates(work: PipelineWork, keys: Sequence[str]) -> list[FailedGate]:
    steps = work.pipeline.ordered_steps
    may_fail = keys and any(step.is_gate for step in steps)
    return plan_of(work, steps, keys, any_format=True).gates if may_fail else []


def _why(state: State, task: TaskState | None, gates: Sequence[FailedGate]) -> str:
    if state == "failed" and gates:
        return "\n".join(map(str, gates))
    return task.why if task is not None and task.state == state else ""


def _batches(work: PipelineWork, name: str, keys: Iterable[str]) -> tuple[list[CommitRecord], int]:
    """The committed batches of a step, and how many of them are to be made again."""
    records, stale = [], 0
    step = work.step(work.pipeline.step(name)) if keys else None
    for key in keys:
        assert step is not None
        record = step.folder.record(key)
        if record is not None:
            records.append(record)
            stale += not step.is_done(key, any_format=True)
    return records, stale


def _state(
    work: PipelineWork,
    was_read: bool,
    steps: Iterable[StepStatus],
    task: TaskState | None,
    gates: Sequence[FailedGate],
) -> State:
    """What the files say, unless Dagster's storage knows better."""
    if is_locked(work.layout.folder):
        return "running"
    if task is not None and task.state == "paused":
        return "paused"
    if gates:
        return "failed"
    if was_read and all(step.batches_done == step.batches_total for step in steps):
        return "done"
    if task is not None and task.state == "failed":
        return "failed"
    return "partial" if was_read else "new"


def _paused_at(task: TaskState | None) -> PausedAt | None:
    if task is None or task.who is None or task.cause not in ("user", "budget", "breaker"):
        return None
    return PausedAt(task.who, task.when, task.why, task.cause, task.step, task.batch)


def usage_of(records: Iterable[CommitRecord]) -> dict[str, float]:
    """What the calls to models of these batches took; nothing for a step without any."""
    total: dict[str, float] = {}
    for record in records:
        for name, value in record.usage.items():
            total[name] = round(total.get(name, 0) + value, 6)
    return total


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums by name, names sorted."""
    total: dict[str, int] = {}
    for some in counts:
        for name, count in some.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))
