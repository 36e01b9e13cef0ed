"""Pause and resume of a pipeline as Dagster jobs, so that they can be launched from the UI."""

import dagster as dg
from pydantic import Field

from dataflow_assets.io.step_files import cancelled_when_stopped
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.names import identifier
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.run import run_pipeline
from dataflow_assets.running_task import resuming
from dataflow_assets.task_state import TaskStore, new_pause

_UI = "Dagster UI"


class PauseConfig(dg.Config):
    """Why the pipeline shall stand still."""

    reason: str = Field("", description="Why; shown by `dataflow-assets status` and by whatever is refused.")


def pause_job(pipeline: Pipeline) -> dg.JobDefinition:
    """`<pipeline>_pause`: what runs of the pipeline stops after the batches in hand, nothing new begins."""
    name = f"{identifier(pipeline.name)}_pause"

    @dg.op(name=f"{name}_op", description=f"Pauses {pipeline.name}; a second pause changes nothing.")
    def pause(context: dg.OpExecutionContext, config: PauseConfig) -> None:
        asked = new_pause(pipeline, config.reason, _UI)
        context.log.info(str(_store(context, pipeline).ask_pause(asked)))

    @dg.job(name=name, description=f"Pauses {pipeline.name}: `{identifier(pipeline.name)}_resume` goes on.")
    def job() -> None:
        pause()

    return job


def resume_job(pipeline: Pipeline) -> dg.JobDefinition:
    """`<pipeline>_resume`: lifts the pause and makes what is missing, in a run of its own, to the end."""
    name = f"{identifier(pipeline.name)}_resume"

    @dg.op(name=f"{name}_op", description=f"Lifts the pause of {pipeline.name} and goes on with it.")
    def resume(context: dg.OpExecutionContext) -> None:
        store = _store(context, pipeline)
        with (
            cancelled_when_stopped(context.instance, context.run),
            resuming(store, context.log.info),
        ):
            run_pipeline(PipelineWork(pipeline), context.instance)

    @dg.job(name=name, description=f"Goes on with {pipeline.name}, paused or not.")
    def job() -> None:
        resume()

    return job


def _store(context: dg.OpExecutionContext, pipeline: Pipeline) -> TaskStore:
    return TaskStore(context.instance, PipelineWork(pipeline).layout.folder)
