"""Run, pause and resume of a pipeline as Dagster jobs, so that they can be launched from the UI."""

import dagster as dg
from pydantic import Field

from dataflow_assets.estimate import Estimate, estimate
from dataflow_assets.io.preview import markdown_rows
from dataflow_assets.io.step_files import cancelled_when_stopped
from dataflow_assets.jobs.launching import (
    NO_RETRIES,
    job_name,
    same_as,
    single_op_job,
    tell_status,
)
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.run import run_pipeline
from dataflow_assets.running_task import resuming
from dataflow_assets.serving.usage import shown_cost
from dataflow_assets.task_state import TaskStore, new_pause

_UI = "Dagster UI"


class PauseConfig(dg.Config):
    """Why the pipeline shall stand still."""

    reason: str = Field(
        default="", description="Why; shown by `dataflow-assets status` and by whatever is refused."
    )


class GoOn(dg.Config):
    """What a run takes over from the pipeline's file, and what it does otherwise."""

    select: list[str] = Field(default=[], description="Only these steps, by name; none: all steps.")
    input: str = Field(
        default="",
        description="Read this file, folder or glob instead of the pipeline's source; empty: its source.",
    )
    format: str = Field(
        default="",
        description="Format of step files: `jsonl`, `json`, `csv`, `parquet`, `pickle`; empty: as it is.",
    )
    batch_rows: int = Field(
        default=0,
        ge=0,
        description="Rows in a batch; 0: as the pipeline says. A new number makes every batch again.",
    )
    workers: int = Field(
        default=0, ge=0, description="Batches in hand at a time; 0: as the pipeline says, else the cores."
    )
    serving: str = Field(
        default="",
        description="Ask this serving: the pipeline's, `openai` or `scripted`, a fake; empty: as steps say.",
    )

    def work(self, pipeline: Pipeline, reuse: bool = True) -> PipelineWork:
        """The pipeline with these changes. Raises ConfigError."""
        changed = pipeline.with_changes(
            input=self.input or None,
            format=self.format or None,
            batch_rows=self.batch_rows or None,
            workers=self.workers or None,
            serving=self.serving or None,
        )
        for name in self.select:
            changed.step(name)
        work = PipelineWork(changed, reuse=reuse)
        work.check_before_run()
        return work


class Run(GoOn):
    """The same for a run that may begin anew or only look what it would cost."""

    fresh: bool = Field(
        default=False,
        description="Make every batch again, whatever is committed or answered. Answers cost again.",
    )
    dry_run: int = Field(
        default=0,
        ge=0,
        description="Ask for so many rows only and say what all would cost; commits nothing. 0: run.",
    )


def run_job(pipeline: Pipeline) -> dg.JobDefinition:
    """`<pipeline>_run`: what `dataflow-assets run` does; queued while another run of the pipeline goes on."""
    name = job_name(pipeline, "run")

    @dg.op(name=f"{name}_op", pool=pipeline.name)
    def run(context: dg.OpExecutionContext, config: Run) -> None:
        work = config.work(pipeline, reuse=not config.fresh)
        with cancelled_when_stopped(context.instance, context.run):
            if config.dry_run:
                _tell_estimate(context, estimate(work, config.dry_run))
                return
            run_pipeline(work, context.instance, config.select, context.run_id)
        tell_status(context, work)

    what = f"Makes what is missing or out of date in {pipeline.name}: reads the source, then makes the steps."
    text = same_as(pipeline, "run", what)
    return single_op_job(run, name, text, Run, {})


def resume_job(pipeline: Pipeline) -> dg.JobDefinition:
    """`<pipeline>_resume`: lifts the pause and makes what is missing, in a run of its own, to the end."""
    name = job_name(pipeline, "resume")

    @dg.op(name=f"{name}_op")
    def resume(context: dg.OpExecutionContext, config: GoOn) -> None:
        work = config.work(pipeline)
        with (
            cancelled_when_stopped(context.instance, context.run),
            resuming(_store(context, pipeline), context.log.info),
        ):
            run_pipeline(work, context.instance, config.select, context.run_id)
        tell_status(context, work)

    text = same_as(pipeline, "resume", f"Goes on with {pipeline.name}, paused or not.")
    return single_op_job(resume, name, text, GoOn, {})


def pause_job(pipeline: Pipeline) -> dg.JobDefinition:
    """`<pipeline>_pause`: what runs of the pipeline stops after the batches in hand, nothing new begins."""
    name = job_name(pipeline, "pause")

    @dg.op(name=f"{name}_op")
    def pause(context: dg.OpExecutionContext, config: PauseConfig) -> None:
        asked = new_pause(pipeline, config.reason, _UI)
        context.log.info(str(_store(context, pipeline).ask_pause(asked)))

    what = f"Pauses {pipeline.name} after what is in hand, until {job_name(pipeline, 'resume')}."
    text = same_as(pipeline, "pause", what)
    return single_op_job(pause, name, text, PauseConfig, NO_RETRIES)


def _tell_estimate(context: dg.OpExecutionContext, found: Estimate) -> None:
    header = ("step", "model", "rows", "calls", "tokens in", "tokens out", "cost")
    lines = [
        (
            step.name,
            step.model,
            *(f"{number:,.0f}" for number in (step.rows, step.calls, step.tokens_in, step.tokens_out)),
            shown_cost(step.cost),
        )
        for step in found.steps
    ]
    context.add_output_metadata(
        {
            "estimate": dg.MetadataValue.md(markdown_rows(header, lines)),
            "cost": dg.MetadataValue.float(found.cost),
            "rows": dg.MetadataValue.int(found.rows),
            "sampled_rows": dg.MetadataValue.int(found.sampled),
            "failed_rows": dg.MetadataValue.int(found.failed),
        }
    )


def _store(context: dg.OpExecutionContext, pipeline: Pipeline) -> TaskStore:
    return TaskStore(context.instance, PipelineWork(pipeline).layout.folder)
