"""The Dagster jobs that change nothing in a pipeline: status, a row's life, export, profiles, report."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from dataflow_assets.exports.file import export_step
from dataflow_assets.io.preview import markdown_rows
from dataflow_assets.jobs.launching import NO_RETRIES, job_name, same_as, single_op_job, tell_status
from dataflow_assets.mirror import asset_key
from dataflow_assets.pipeline_work import SOURCE, PipelineWork

if TYPE_CHECKING:
    from dataflow_assets.trace.told import Told


class TraceConfig(dg.Config):
    """Which row."""

    row_id: str = Field(description="The row's `row_id`, as previews, samples and failed rows show it.")


def status_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_status`: how its steps stand, by the files that are there."""
    pipeline = work.pipeline
    name = job_name(pipeline, "status")
    text = same_as(pipeline, "status", f"Shows how the steps of {pipeline.name} stand.")

    @dg.op(name=f"{name}_op")
    def status(context: dg.OpExecutionContext) -> None:
        tell_status(context, work)

    return single_op_job(status, name, text, None, NO_RETRIES)


def trace_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_trace`: the life of one row, from the source to where it ended."""
    pipeline = work.pipeline
    name = job_name(pipeline, "trace")
    text = same_as(pipeline, "trace", f"Shows what each step of {pipeline.name} made of one row.")

    @dg.op(name=f"{name}_op")
    def trace(context: dg.OpExecutionContext, config: TraceConfig) -> None:
        from dataflow_assets.trace.life import life_of
        from dataflow_assets.trace.told import told_life

        stations = list(told_life(work, life_of(work, config.row_id)))
        for station in stations:
            context.log.info("\n  ".join([station.what, *station.lines]))
        rows = [row for station in stations for row in _lines_of(station)]
        context.add_output_metadata({"life": dg.MetadataValue.md(markdown_rows(("station", "what"), rows))})

    return single_op_job(trace, name, text, TraceConfig, NO_RETRIES)


def _lines_of(station: "Told") -> Iterator[tuple[str, str]]:
    """A row of a table for each line of a station, which is named in the first."""
    first, *others = station.lines or [""]
    yield station.what, first
    yield from (("", line) for line in others)


class ExportConfig(dg.Config):
    """Which rows are written, and where."""

    to: str = Field(
        default="",
        description="The file; its ending says the format: .jsonl, .json, .csv, .parquet or .pickle. "
        "A relative one counts from the folder in which Dagster was started. Empty: "
        "exports/<pipeline>_<step>.jsonl there.",
    )
    step: str = Field(default="", description="The step whose rows are written; empty: the last one.")
    row_id: bool = Field(default=False, description="Keep the column `row_id`.")
    allow_partial: bool = Field(
        default=False, description="Write although rows failed or batches are missing."
    )


class ProfileConfig(dg.Config):
    """Which steps are looked at."""

    steps: list[str] = Field(default=[], description="Only these steps, by name, or `source`; none: all.")


def export_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_export`: the rows of a step as one file."""
    pipeline = work.pipeline
    name = job_name(pipeline, "export")
    text = same_as(pipeline, "export", f"Writes the rows of a step of {pipeline.name} to one file.")

    @dg.op(name=f"{name}_op")
    def export(context: dg.OpExecutionContext, config: ExportConfig) -> None:
        step = config.step or pipeline.ordered_steps[-1].name
        to = Path(config.to or f"exports/{pipeline.name}_{step}.jsonl").absolute()
        rows = export_step(work, step, to, config.row_id, config.allow_partial)
        found = {"file": dg.MetadataValue.path(to), "dagster/row_count": dg.MetadataValue.int(rows)}
        context.add_output_metadata(found)
        context.log_event(
            dg.AssetObservation(asset_key(pipeline, step), description="Exported", metadata=found)
        )

    return single_op_job(export, name, text, ExportConfig, NO_RETRIES)


def profile_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_profile`: profiles of the steps, which are seen on their asset pages afterwards."""
    pipeline = work.pipeline
    name = job_name(pipeline, "profile")

    @dg.op(name=f"{name}_op")
    def profile(context: dg.OpExecutionContext, config: ProfileConfig) -> None:
        from dataflow_assets.profiles import profile_of

        known = [SOURCE, *(step.name for step in pipeline.ordered_steps)]
        for step in config.steps or known:
            if step != SOURCE:
                pipeline.step(step)
            found = profile_of(work, step).as_json()
            metadata = {"profile": dg.MetadataValue.json(found)}
            observed = dg.AssetObservation(asset_key(pipeline, step), metadata=metadata)
            context.log_event(observed)
            context.log.info(f"{step}: {found['rows']:,} rows, {len(found['columns'])} columns")

    text = (
        f"Measures the committed rows of the steps of {pipeline.name}: lengths, languages, duplicates, "
        "top values. Each profile is an observation of its asset."
    )
    return single_op_job(profile, name, text, ProfileConfig, NO_RETRIES)


class ReportConfig(dg.Config):
    """Where the report and the data card are written."""

    to: str = Field(
        default="",
        description="The page, an .html file; empty: exports/<pipeline>.html in the folder in which Dagster "
        "was started.",
    )
    card: str = Field(default="", description="The data card for Hugging Face, an .md file; empty: none.")


def report_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_report`: what the steps did to the data, as one page."""
    pipeline = work.pipeline
    name = job_name(pipeline, "report")
    text = same_as(
        pipeline, "report", f"Writes what the steps of {pipeline.name} did to the data as one page."
    )

    @dg.op(name=f"{name}_op")
    def report(context: dg.OpExecutionContext, config: ReportConfig) -> None:
        from dataflow_assets.report.writing import write_report

        to = Path(config.to or f"exports/{pipeline.name}.html").absolute()
        card = Path(config.card).absolute() if config.card else None
        paths = write_report(work, to, card)
        context.add_output_metadata({path.suffix[1:]: dg.MetadataValue.path(path) for path in paths})

    return single_op_job(report, name, text, ReportConfig, NO_RETRIES)
