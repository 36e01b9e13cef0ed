"""A step's committed batches as one data set, refused where some are missing or stale, or rows failed."""

from dataclasses import dataclass

from dataflow_assets.batch import ROW_ID, Schema
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.status import StepStatus, step_statuses
from dataflow_assets.step_rows import StepRows
from dataflow_assets.task_state import resume_argument


@dataclass(frozen=True)
class FinishedStep:
    """The kept rows of one step: its committed batches in partition order, as their records have them."""

    name: str
    kept: StepRows

    @property
    def records(self) -> tuple[CommitRecord, ...]:
        """The records of the batches."""
        return tuple(self.kept.records.values())

    def columns(self, with_row_id: bool = True) -> Schema:
        """The columns of all batches, each of a type that holds the values of all.

        Raises ConfigError where that leaves rows without a column: no file tells how many there are.
        """
        columns: Schema = {
            name: kind for name, kind in self.kept.columns.items() if with_row_id or name != ROW_ID
        }
        if not columns and self.kept.rows:
            raise ConfigError(
                f"the {self.kept.rows:,} rows of {self.name!r} have no column but {ROW_ID!r}, so nothing "
                "would be written; keep it (--row-id, or with_row_id=True in Python), or give another step"
            )
        return columns


def finished_step(
    work: PipelineWork, step: str | int | None = None, allow_partial: bool = False, told: str = "the export"
) -> FinishedStep:
    """A step by its name or number (default: the last one; 0 or `source` is what was read).

    Raises ConfigError for an unknown step and, unless partial is allowed, RunError where rows of this step
    or one before failed, or batches are missing or stale. `told` is what the rows are wanted for.
    """
    manifest = work.manifest()
    name = _name_of(work, step)
    if not allow_partial:
        _refuse_partial(work, name, step_statuses(work, manifest.batches if manifest else []), told)
    batches = work.known_manifest().batches
    kept = StepRows.of(work.folder_of(name), batches)
    if not allow_partial and len(kept.records) < len(batches):
        raise RunError(
            f"{len(kept.records)} of {len(batches)} batches of {name!r} are committed; run "
            f"`dataflow-assets run {resume_argument(work.pipeline)}` first, or allow what is partial"
        )
    return FinishedStep(name, kept)


def _name_of(work: PipelineWork, step: str | int | None) -> str:
    steps = [SOURCE, *(each.name for each in work.pipeline.ordered_steps)]
    if step is None:
        return steps[-1]
    if isinstance(step, str):
        return SOURCE if step == SOURCE else work.pipeline.step(step).name
    if not 0 <= step < len(steps):
        known = ", ".join(f"{number} {name}" for number, name in enumerate(steps))
        raise ConfigError(
            f"pipeline {work.pipeline.name!r} has no step number {step}; expected one of {known}"
        )
    return steps[step]


def _refuse_partial(work: PipelineWork, name: str, steps: list[StepStatus], told: str) -> None:
    on_the_way = ancestors(work, name) | {name}
    for status in steps:
        if status.name not in on_the_way:
            continue
        missing = status.batches_total - status.batches_done
        if missing or not status.batches_total:
            raise RunError(
                f"step {status.name!r} has {status.batches_done} of {status.batches_total} batches up to "
                f"date; run `dataflow-assets run {resume_argument(work.pipeline)}` first, or allow what is "
                "partial (--allow-partial, or allow_partial=True in Python)"
            )
        if status.failed:
            raise RunError(
                f"{status.failed} rows failed in step {status.name!r} and are not in {told}; see "
                f"{place_of(work.folder_of(status.name).path / '_failed')}, or allow what is partial "
                "(--allow-partial, or allow_partial=True in Python)"
            )


def ancestors(work: PipelineWork, name: str) -> set[str]:
    """The steps whose rows a step's rows come from, without the source."""
    found: set[str] = set()
    pending = [] if name == SOURCE else [name]
    while pending:
        parents = set(work.pipeline.parents(pending.pop())) - found - {SOURCE}
        found |= parents
        pending += parents
    return found
