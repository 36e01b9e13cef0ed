"""`dataflow-assets run`."""

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.cli.console import pipeline_option, print_line, print_table, shown_path
from dataflow_assets.cli.display import print_status, run_display
from dataflow_assets.errors import ConfigError, PipelineBusy
from dataflow_assets.memory import settle_memory
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork, scripted_by_default, unpriced_models
from dataflow_assets.plugins.known import metrics_settings
from dataflow_assets.serving.usage import shown_cost
from dataflow_assets.status import status_of

if TYPE_CHECKING:
    from dataflow_assets.versions.lock import RunLock

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
@click.option(
    "--select", multiple=True, metavar="STEP", help="Only this step, or `source`; may be given several times."
)
@click.option(
    "--serving", metavar="NAME", help="Ask this serving: one of the pipeline, `openai`, `scripted`."
)
@click.option("--fresh", is_flag=True, help="Make every batch again, whatever is committed or answered.")
@click.option(
    "--metrics-file",
    metavar="PATH",
    help="Keep the run's numbers in this file for Prometheus (node_exporter).",
)
@click.option(
    "--metrics-port", metavar="[HOST:]PORT", help="Serve the run's numbers to Prometheus here while it runs."
)
@click.option(
    "--dry-run", type=click.IntRange(min=1), metavar="N", help="Ask for N rows only; say what all would cost."
)
@click.option(
    "--locked",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Repeat the run of this lock file: refuse other inputs, parameters and versions, and other rows.",
)
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
    serving: str | None,
    fresh: bool,
    metrics_file: str | None,
    metrics_port: str | None,
    dry_run: int | None,
    locked: Path | None,
) -> None:
    """Run a pipeline, or go on with it: only batches that are missing or out of date are made."""
    metrics = metrics_settings(metrics_file, metrics_port)
    changed = find_pipeline(pipeline).with_changes(
        input=input_path,
        root=root,
        format=format_,
        batch_rows=batch_rows,
        workers=workers,
        serving=serving,
        plugins={"metrics": metrics} if metrics else None,
    )
    settle_memory(changed.workers or os.cpu_count() or 1)
    work = PipelineWork(changed, reuse=not fresh)
    changed.selected(select)
    work.check_before_run()
    run_lock = None if locked is None else _checked_lock(work, locked, select, dry_run)
    print_line(f"{changed.name}: {shown_path(work.layout.folder)}")
    if not serving and scripted_by_default(changed):
        print_line(
            "No serving is set: the scripted serving answers, a fake. For a real model set OPENAI_MODEL and "
            "OPENAI_BASE_URL or OPENAI_API_KEY, or name a serving of the pipeline with --serving."
        )
    for name in unpriced_models(changed):
        print_line(f"The price of {name!r} is not known, its cost counts as 0: give its serving a `price`.")
    if dry_run is not None:
        _print_estimate(work, dry_run)
        return
    if work.hold_bytes is not None:
        print_line(
            f"write: lazy: up to {work.hold_bytes / 1e6:,.1f} MB of a step's batches are held in memory; a "
            "SIGKILL or a power cut costs these, and they are made again. Ctrl-C, SIGTERM and `pause` cost "
            "nothing; `flush` commits what is held"
        )
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
    if run_lock is not None:
        from dataflow_assets.versions.locked import refuse_other_rows

        made = PipelineWork(changed)  # one that is `fresh` counts nothing as up to date
        refuse_other_rows(made, run_lock, str(locked))
        print_line(f"The rows are those of {locked}.")
    status = status_of(work)
    print_status(status, work.layout.folder)
    if status.failed_rows:
        where = shown_path(work.layout.folder)
        print_line(f"{status.failed_rows} rows failed; they are in _failed of their step in {where}")
        context.exit(ROWS_FAILED)


def _checked_lock(work: PipelineWork, file: Path, select: tuple[str, ...], dry_run: int | None) -> "RunLock":
    """The lock, where this run can be the one that it is of. Raises ConfigError."""
    from dataflow_assets.versions.lock import read_lock
    from dataflow_assets.versions.locked import refuse_other_plan

    if select or dry_run is not None:
        raise ConfigError("--locked repeats a whole run; leave out --select and --dry-run")
    run_lock = read_lock(file)
    refuse_other_plan(work, run_lock, str(file))
    return run_lock


def _print_estimate(work: PipelineWork, rows: int) -> None:
    from dataflow_assets.estimate import estimate

    found = estimate(work, rows)
    cells = [
        (
            step.name,
            step.model,
            f"{step.rows:,.0f}",
            f"{step.calls:,.0f}",
            f"{step.tokens_in:,.0f}",
            f"{step.tokens_out:,.0f}",
            shown_cost(step.cost),
            "?" if step.hours is None else f"{step.hours:,.2f}",
        )
        for step in found.steps
    ]
    headers = ("step", "model", "rows", "calls", "tokens in", "tokens out", "cost", "hours")
    print_table(headers, cells, right=headers[2:])
    print_line(
        f"about {shown_cost(found.cost)} for {found.rows:,} rows, judged by the first {found.sampled:,} "
        f"of them ({found.failed:,} failed), whose answers are in the ledger now"
    )
