"""Where a pipeline stands: read from its records, never from memory."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from dataflow_assets.control import is_locked
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline_work import PipelineWork

State = Literal["new", "running", "partial", "done"]


@dataclass(frozen=True)
class StepStatus:
    """The sums over a step's committed batches. `stale` has batches made of other code or input than now."""

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


@dataclass(frozen=True)
class PipelineStatus:
    """`new`: nothing read; `running`: a process holds the lock; `partial`: batches are to do; `done`."""

    pipeline: str
    state: State
    rows_read: int
    steps: list[StepStatus]
    source_rejected: dict[str, int] = field(default_factory=dict)

    @property
    def failed_rows(self) -> int:
        """Rows that wait in `_failed`, over all steps."""
        return sum(step.failed for step in self.steps)

    def as_json(self) -> dict:
        """The status as plain JSON values."""
        return asdict(self)


def status_of(work: PipelineWork) -> PipelineStatus:
    """The status now. Raises StorageError where records cannot be read."""
    pipeline = work.pipeline
    manifest = work.manifest()
    keys = manifest.batches if manifest else []
    steps = []
    for number, step in enumerate(pipeline.ordered_steps, start=1):
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
            )
        )
    return PipelineStatus(
        pipeline.name,
        _state(work, bool(manifest), steps),
        manifest.rows if manifest else 0,
        steps,
        summed(file.rejected for file in manifest.files) if manifest else {},
    )


def _batches(work: PipelineWork, name: str, keys: Iterable[str]) -> tuple[list[CommitRecord], int]:
    """The committed batches of a step, and how many of them are to be made again."""
    records, stale = [], 0
    step = work.step(work.pipeline.step(name)) if keys else None
    for key in keys:
        assert step is not None
        record = step.folder.record(key)
        if record is not None:
            records.append(record)
            stale += not step.is_done(key)
    return records, stale


def _state(work: PipelineWork, was_read: bool, steps: Iterable[StepStatus]) -> State:
    if is_locked(work.layout.folder):
        return "running"
    if not was_read:
        return "new"
    return "done" if all(step.batches_done == step.batches_total for step in steps) else "partial"


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums by name, names sorted."""
    total: dict[str, int] = {}
    for some in counts:
        for name, count in some.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))
