"""The Dagster jobs for failed rows of a pipeline: list them, try them again, put them back as edited."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import dagster as dg
from pydantic import Field

from dataflow_assets.batch import rows_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.failed_queue import put_back
from dataflow_assets.failed_queue.retry import StepRetried, retry_failed
from dataflow_assets.failed_queue.rows_file import export_failed
from dataflow_assets.failed_queue.selection import MAX_ATTEMPTS, Which, failed_rows
from dataflow_assets.io.preview import markdown_rows
from dataflow_assets.io.step_files import cancelled_when_stopped
from dataflow_assets.jobs.launching import (
    NO_RETRIES,
    job_name,
    same_as,
    single_op_job,
    tell_status,
)
from dataflow_assets.pipeline_work import PipelineWork

_SERVING = "The serving that the run was told to ask; empty: that of each step."
_MAX_ATTEMPTS = "A row with so many attempts is parked."


class FailedRowsConfig(dg.Config):
    """Which failed rows are listed, and where they are written."""

    step: str = Field(default="", description="Only rows that failed in this step; empty: in any.")
    error_class: list[str] = Field(default=[], description="Only rows with these error classes; none: all.")
    parked: bool = Field(default=False, description="Only rows that are not tried again by themselves.")
    max_attempts: int = Field(default=MAX_ATTEMPTS, ge=1, description=_MAX_ATTEMPTS)
    to: str = Field(
        default="",
        description="Write the rows to this JSONL file, to be edited and put back; empty: only count.",
    )

    def which(self) -> Which:
        """The rows that are meant."""
        return _which(self.step, self.error_class, "alone" if self.parked else "in", self.max_attempts)


class RetryFailed(dg.Config):
    """Which failed rows are tried again; no step and no class named means all."""

    step: str = Field(default="", description="Only rows that failed in this step; empty: in any.")
    error_class: list[str] = Field(default=[], description="Only rows with these error classes; none: all.")
    parked: bool = Field(
        default=False, description="Parked rows too: those with `max_attempts` attempts or more."
    )
    max_attempts: int = Field(default=MAX_ATTEMPTS, ge=1, description=_MAX_ATTEMPTS)
    serving: str = Field(default="", description=_SERVING)

    def which(self) -> Which:
        """The rows that are meant."""
        return _which(self.step, self.error_class, "in" if self.parked else "out", self.max_attempts)


class PutBackConfig(dg.Config):
    """The edited rows of a step."""

    step: str = Field(description="The step in which the rows failed.")
    file: str = Field(
        default="",
        description="The edited JSONL file, as the job for failed rows wrote it; needed unless `drop`.",
    )
    drop: bool = Field(
        default=False, description="Take edits back: those of the rows in `file`, or all of the step."
    )
    serving: str = Field(default="", description=_SERVING)


def retry_failed_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_retry_failed`; what depends on the rows is redone in a run of its own."""
    pipeline = work.pipeline
    name = job_name(pipeline, "retry_failed")

    @dg.op(name=f"{name}_rows", pool=pipeline.name)
    def rows(context: dg.OpExecutionContext, config: RetryFailed) -> None:
        asked = _asking(work, config.serving)
        with cancelled_when_stopped(context.instance, context.run):
            retry_failed(
                asked, context.instance, config.which(), tell=_teller(context), run_id=context.run_id
            )
        tell_status(context, asked)

    what = f"Tries the failed rows of {pipeline.name} again, and makes again what depends on them."
    text = same_as(pipeline, "retry-failed", what)
    return single_op_job(rows, name, text, RetryFailed, {})


def failed_rows_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_failed_rows`: how many rows failed with which error, or the rows as a file."""
    pipeline = work.pipeline
    name = job_name(pipeline, "failed_rows")

    @dg.op(name=f"{name}_op")
    def listed(context: dg.OpExecutionContext, config: FailedRowsConfig) -> None:
        which = config.which()
        if config.step:
            pipeline.step(config.step)
        counts: Counter[tuple[str, str]] = Counter()
        for rows in failed_rows(work, which):
            counts.update((rows.step, str(row["error_class"])) for row in rows_of(rows.table))
        lines = [(*kind, f"{count:,}") for kind, count in counts.items()]
        table = markdown_rows(("step", "error_class", "rows"), lines)
        metadata: dict[str, dg.MetadataValue] = {
            "failed_rows": dg.MetadataValue.int(counts.total()),
            "failures": dg.MetadataValue.md(table),
        }
        if config.to:
            export_failed(work, which, Path(config.to))
            metadata["file"] = dg.MetadataValue.path(Path(config.to).absolute())
        context.add_output_metadata(metadata)
        context.log.info(f"{counts.total()} failed rows")

    what = f"Counts the failed rows of {pipeline.name}, and writes them to a file to be edited."
    text = same_as(pipeline, "failed", what)
    return single_op_job(listed, name, text, FailedRowsConfig, NO_RETRIES)


def put_back_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_put_back`: takes failed rows back as a file has them, and tries them again."""
    pipeline = work.pipeline
    name = job_name(pipeline, "put_back")

    @dg.op(name=f"{name}_op", pool=pipeline.name)
    def back(context: dg.OpExecutionContext, config: PutBackConfig) -> None:
        asked = _asking(work, config.serving)
        file = Path(config.file) if config.file else None
        with cancelled_when_stopped(context.instance, context.run):
            if config.drop:
                put_back.drop_edits(
                    asked, context.instance, config.step, file, _teller(context), context.run_id
                )
            elif file is None:
                wanted = job_name(pipeline, "failed_rows")
                raise ConfigError(f"`file` is missing; the job {wanted} writes one with `to`")
            else:
                put_back.put_back(
                    asked, context.instance, config.step, file, _teller(context), context.run_id
                )
        tell_status(context, asked)

    what = f"Takes failed rows of {pipeline.name} back as a file has them, and tries them again."
    text = same_as(pipeline, "put-back", what)
    return single_op_job(back, name, text, PutBackConfig, NO_RETRIES)


def _which(
    step: str | None, classes: list[str], parked: Literal["out", "in", "alone"], max_attempts: int
) -> Which:
    return Which([step] if step else [], classes, parked, max_attempts)


def _asking(work: PipelineWork, serving: str) -> PipelineWork:
    return PipelineWork(work.pipeline.with_changes(serving=serving)) if serving else work


def _teller(context: dg.OpExecutionContext) -> Callable[[StepRetried], None]:
    def tell(retried: StepRetried) -> None:
        for line in retried.lines():
            context.log.info(line)

    return tell
