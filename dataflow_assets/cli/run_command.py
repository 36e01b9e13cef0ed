"""`dataflow-assets run`."""

import gc
import os
from pathlib import Path

import click

from dataflow_assets.cli.console import pipeline_option, print_line, shown_path
from dataflow_assets.cli.display import print_status, run_display
from dataflow_assets.errors import PipelineBusy
from dataflow_assets.memory import settle_memory
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.status import status_of

ROWS_FAILED = 5
_FORMATS = ("jsonl", "json", "csv", "parquet", "pickle")


@click.command()
@pipeline_option
@click.option(
    "--input",
    "input_path",
    metavar="PATH",
    help="Read this file, folder or glob instead of the pipeline's source.",
)
@click.option("--format", "format_", type=click.Choice(_FORMATS), help="Format of the step files.")
@click.option("--batch-rows", type=click.IntRange(min=1), help="Rows in a batch.")
@click.option("--workers", type=click.IntRange(min=1), help="Batches in hand at a time [default: the cores].")
@click.option("--select", multiple=True, metavar="STEP", help="Only this step; may be given several times.")
@click.option("--fresh", is_flag=True, help="Make every batch again, whatever is committed.")
@click.pass_context
def run(
    context: click.Context,
    pipeline: str,
    root: str | None,
    input_path: str | None,
    format_: str | None,
    batch_rows: int | None,
    workers: int | None,
    select: tuple[str, ...],
    fresh: bool,
) -> None:
    """Run a pipeline, or go on with it: only batches that are missing or out of date are made."""
    changed = find_pipeline(pipeline).with_changes(
        input=input_path, root=root, format=format_, batch_rows=batch_rows, workers=workers
    )
    settle_memory(changed.workers or os.cpu_count() or 1)
    work = PipelineWork(changed, reuse=not fresh)
    for name in select:
        changed.step(name)
    work.check_before_run()
    print_line(f"{changed.name}: {shown_path(work.layout.folder)}")
    with run_display(work) as display:
        gc.disable()  # as in the package: Dagster is imported here
        from dataflow_assets.home import open_instance
        from dataflow_assets.run import run_pipeline

        instance = open_instance(Path.cwd())
        gc.enable()
        gc.freeze()
        try:
            run_pipeline(work, instance, select)
        except PipelineBusy:
            display.quiet = True
            raise
    status = status_of(work)
    print_status(status)
    if status.failed_rows:
        where = shown_path(work.layout.folder)
        print_line(f"{status.failed_rows} rows failed; they are in _failed of their step in {where}")
        context.exit(ROWS_FAILED)
