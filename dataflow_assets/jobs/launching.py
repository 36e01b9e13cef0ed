"""What the jobs of a pipeline have in common: names, texts of their forms, and how a run's end is told."""

from collections.abc import Mapping

import dagster as dg

from dataflow_assets.check_events import MAX_RETRIES_TAG
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.preview import markdown_rows
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.names import identifier
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.status import StepStatus, step_statuses

# A job that does one small thing fails for a reason that a second try does not take away.
NO_RETRIES = {MAX_RETRIES_TAG: "0"}


def job_name(pipeline: Pipeline, what: str) -> str:
    """`<pipeline>_<what>`."""
    return f"{identifier(pipeline.name)}_{what}"


def same_as(pipeline: Pipeline, command: str, what: str) -> str:
    """The description of a job that does what a command does, with the names that its form takes."""
    steps = ", ".join(f"`{step.name}`" for step in pipeline.ordered_steps)
    servings = (
        f" Servings: {', '.join(f'`{name}`' for name in pipeline.servings)}." if pipeline.servings else ""
    )
    return f"{what} The same as `dataflow-assets {command} {pipeline.name}`. Steps: {steps}.{servings}"


def single_op_job(
    op: dg.OpDefinition, name: str, description: str, form: type[dg.Config] | None, tags: Mapping[str, str]
) -> dg.JobDefinition:
    """A job of this op alone; its launch form has the fields of `form` and nothing else, or is empty."""
    fields = dg.ConfigMapping(
        config_fn=lambda given: {"ops": {op.name: {"config": given}}} if form else {},
        config_schema=_fields(form) if form else {},
    )

    @dg.job(name=name, description=description, config=fields, tags=dict(tags))
    def job() -> None:
        op()

    return job


def _fields(form: type[dg.Config]) -> dict[str, dg.Field]:
    """The fields of a form as plain values; those of `dg.Config` offer a variable for each besides."""
    fields = {}
    for name, field in form.model_fields.items():
        kind = [str] if field.annotation == list[str] else field.annotation
        default = {} if field.is_required() else {"default_value": field.default}
        fields[name] = dg.Field(kind, description=field.description, **default)
    return fields


def tell_status(context: dg.OpExecutionContext, work: PipelineWork) -> None:
    """Shows at the op how the pipeline stands; warns of rows that failed."""
    manifest = work.manifest()
    steps = step_statuses(work, manifest.batches if manifest else [])
    context.add_output_metadata(
        {
            "path": dg.MetadataValue.path(place_of(work.layout.folder)),
            "steps": dg.MetadataValue.md(_steps_table(steps)),
            "failed_rows": dg.MetadataValue.int(failed := sum(step.failed for step in steps)),
        }
    )
    if failed:
        context.log.warning(
            f"{failed} rows failed; {job_name(work.pipeline, 'failed_rows')} lists them, "
            f"{job_name(work.pipeline, 'retry_failed')} tries them again"
        )


def _steps_table(steps: list[StepStatus]) -> str:
    header = ("step", "name", "batches", "rows in", "rows out", "rejected", "failed")
    return markdown_rows(header, [_line(step) for step in steps])


def _line(step: StepStatus) -> tuple[str, ...]:
    batches = f"{step.batches_done:,} of {step.batches_total:,}"
    counts = (step.rows_in, step.rows_out, sum(step.rejected.values()), step.failed)
    return (str(step.step), step.name, batches, *(f"{count:,}" for count in counts))
