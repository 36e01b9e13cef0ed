"""All that a report says, as plain data: from records, checks, stored profiles and a few sampled rows."""

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from inspect import cleandoc

from dataflow_assets.batch import Schema
from dataflow_assets.checks import CheckResult
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.optional_packages import version_of
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.report.profiles import stored_profiles
from dataflow_assets.report.samples import Samples, samples_of
from dataflow_assets.status import PipelineStatus, StepStatus, status_of, summed

_PACKAGES = ("dataflow_assets", "dagster", "pyarrow", "polars", "numpy")


@dataclass(frozen=True)
class StepFacts:
    """One step, or the source as number 0: the sums over its committed batches, and what it is.

    `seconds` is the time that its batches took, added up: batches are made side by side. `before` and
    `after` are profiles as JSON values, None where none is stored. `parents` are those of the graph.
    """

    number: int
    name: str
    type: str
    about: str
    parents: list[str]
    batches_done: int
    batches_total: int
    stale: bool
    rows_in: int
    rows_out: int
    rejected: dict[str, int]
    failed: dict[str, int]
    seconds: float
    usage: dict[str, float]
    counts: dict[str, int]
    checks: list[CheckResult]
    versions: list[str]
    params: dict[str, object]
    columns: Schema
    before: dict | None = None
    after: dict | None = None

    @property
    def rejected_rows(self) -> int:
        """Rejected rows of all reasons."""
        return sum(self.rejected.values())

    @property
    def failed_rows(self) -> int:
        """Failed rows of all classes."""
        return sum(self.failed.values())

    @property
    def rows_per_s(self) -> float | None:
        """Rows that came in for each second of its batches."""
        return self.rows_in / self.seconds if self.seconds else None


@dataclass(frozen=True)
class ReportData:
    """What a report says of a pipeline now."""

    pipeline: str
    description: str
    license: str | None
    state: str
    why: str
    made_at: str
    first_start: str | None
    last_end: str | None
    source: dict[str, object]
    steps: list[StepFacts]
    servings: dict[str, dict[str, object]]
    models: list[str]
    settings: dict[str, object]
    versions: dict[str, str]
    samples: Samples
    ends: list[str]
    asks_models: bool
    usage: dict[str, float] = field(default_factory=dict)

    @property
    def source_step(self) -> StepFacts:
        """The source as a step."""
        return self.steps[0]

    @property
    def made_steps(self) -> list[StepFacts]:
        """The steps after the source."""
        return self.steps[1:]

    @property
    def last(self) -> StepFacts:
        """The last step: what the data set is."""
        return self.steps[-1]

    @property
    def failed_rows(self) -> int:
        """Rows that wait in `_failed`, over all steps."""
        return sum(step.failed_rows for step in self.made_steps)

    @property
    def alarms(self) -> list[tuple[StepFacts, CheckResult]]:
        """Every check with its step, those that failed first."""
        pairs = [(step, check) for step in self.steps for check in step.checks]
        return sorted(pairs, key=lambda pair: {False: 0, None: 1, True: 2}[pair[1].passed])

    def step(self, name: str) -> StepFacts:
        """The step of this name, or the source."""
        return next(step for step in self.steps if step.name == name)


def gather(work: PipelineWork) -> ReportData:
    """What there is to say of the pipeline now. Reads records, stored profiles and the sampled batches.

    Raises CorruptFile, StorageError.
    """
    pipeline = work.pipeline
    status = status_of(work)
    manifest = work.manifest()
    keys = manifest.batches if manifest else []
    records = {
        name: [record for record in map(work.folder_of(name).record, keys) if record is not None]
        for name in (SOURCE, *(step.name for step in pipeline.ordered_steps))
    }
    profiles = stored_profiles(work, records)
    steps = [_source_facts(pipeline, status, records[SOURCE], len(keys), profiles)]
    for step, one in zip(pipeline.ordered_steps, status.steps, strict=True):
        steps.append(_facts(pipeline, step, one, records[step.name], profiles))
    all_records = [record for some in records.values() for record in some]
    return ReportData(
        pipeline=pipeline.name,
        description=pipeline.description,
        license=pipeline.license,
        state=status.state,
        why=pipeline.redacted(status.why),
        made_at=_iso(time.time()),
        first_start=_iso(min(record.started_at for record in all_records)) if all_records else None,
        last_end=_iso(max(record.started_at + record.seconds for record in all_records))
        if all_records
        else None,
        source=pipeline.redacted_values(pipeline.source.shown()),
        steps=steps,
        servings={
            name: pipeline.redacted_values(spec.model_dump(mode="json"))
            for name, spec in pipeline.servings.items()
        },
        models=sorted({spec.model for spec in map(pipeline.serving, pipeline.steps) if spec is not None}),
        settings=_settings(pipeline, len(keys), len(manifest.files) if manifest else 0),
        versions={"Python": platform.python_version(), **_versions()},
        samples=samples_of(work),
        ends=[step.name for step in pipeline.ordered_steps if not pipeline.children(step)],
        asks_models=any(isinstance(pipeline.operator(step), LLMOperator) for step in pipeline.steps),
        usage=_added(step.usage for step in status.steps),
    )


def _source_facts(
    pipeline: Pipeline,
    status: PipelineStatus,
    records: Sequence[CommitRecord],
    batches: int,
    profiles: Mapping[str, dict],
) -> StepFacts:
    return StepFacts(
        number=0,
        name=SOURCE,
        type="source",
        about="The rows as they were read.",
        parents=[],
        batches_done=len(records),
        batches_total=batches,
        stale=False,
        rows_in=sum(record.rows_in for record in records),
        rows_out=sum(record.rows_out for record in records),
        rejected=status.source_rejected,
        failed={},
        seconds=round(sum(record.seconds for record in records), 3),
        usage={},
        counts={},
        checks=[],
        versions=sorted({record.operator_version for record in records}),
        params={},
        columns=records[-1].schema if records else {},
        after=profiles.get(SOURCE),
    )


def _facts(
    pipeline: Pipeline,
    step: Step,
    status: StepStatus,
    records: Sequence[CommitRecord],
    profiles: Mapping[str, dict],
) -> StepFacts:
    operator = pipeline.operator(step)
    parents = pipeline.parents(step)
    return StepFacts(
        number=status.step,
        name=step.name,
        type=step.type,
        about=cleandoc(operator.__doc__ or "").partition("\n\n")[0].replace("\n", " "),
        parents=parents,
        batches_done=status.batches_done,
        batches_total=status.batches_total,
        stale=status.stale,
        rows_in=status.rows_in,
        rows_out=status.rows_out,
        rejected=_by_size(status.rejected),
        failed=_by_size(summed(record.failed for record in records)),
        seconds=round(sum(record.seconds for record in records), 3),
        usage=status.usage,
        counts=summed(record.counts for record in records),
        checks=status.checks,
        versions=sorted({record.operator_version for record in records}),
        params=pipeline.redacted_values(operator.params.model_dump(mode="json")),
        columns=records[-1].schema if records else {},
        before=profiles.get(parents[0]),
        after=profiles.get(step.name),
    )


def _by_size(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def _settings(pipeline: Pipeline, batches: int, files: int) -> dict[str, object]:
    return {
        "batches": batches,
        "source files": files,
        "rows in a batch, at most": pipeline.batch_rows or "all",
        "format of the step files": pipeline.format,
        **({"budget": pipeline.budget.model_dump(mode="json")} if pipeline.budget else {}),
    }


def _added(usages: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for usage in usages:
        for name, value in usage.items():
            total[name] = round(total.get(name, 0) + value, 6)
    return total


def _versions() -> dict[str, str]:
    found = {package: version_of(package) for package in _PACKAGES}
    return {package: version for package, version in found.items() if version is not None}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
