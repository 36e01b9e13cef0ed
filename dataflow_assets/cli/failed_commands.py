"""Commands for rows that failed: failed, retry-failed, put-back."""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.batch import ROW_ID, rows_of
from dataflow_assets.cli.console import pipeline_option, print_line, print_table, shown_path, work_of
from dataflow_assets.cli.display import print_status, run_display
from dataflow_assets.cli.look_commands import as_json
from dataflow_assets.cli.run_command import ROWS_FAILED
from dataflow_assets.errors import ConfigError
from dataflow_assets.failed_queue.rows_file import as_json as json_of
from dataflow_assets.failed_queue.rows_file import export_failed
from dataflow_assets.failed_queue.selection import MAX_ATTEMPTS, FailedRows, Which, failed_rows
from dataflow_assets.io.preview import shown_value
from dataflow_assets.operators.operator import FAILED_COLUMNS
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.progress import BatchDone, listening
from dataflow_assets.status import status_of

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from dataflow_assets.failed_queue.retry import StepRetried

    Work = Callable[[DagsterInstance, Callable[[StepRetried], None]], object]

_EXAMPLES = 3
_MESSAGE_CHARS = 300

_steps = click.option(
    "--step", "steps", multiple=True, metavar="STEP", help="Only this step; may be repeated."
)
_classes = click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    help="Only this error class; may be repeated.",
)
_max_attempts = click.option(
    "--max-attempts",
    default=MAX_ATTEMPTS,
    show_default=True,
    type=click.IntRange(min=1),
    help="A row with so many attempts is parked.",
)
_serving = click.option("--serving", metavar="NAME", help="The serving that `run` was told to ask.")


@click.command()
@pipeline_option
@_steps
@_classes
@click.option("--parked", is_flag=True, help="Only rows that are not tried again by themselves.")
@_max_attempts
@click.option(
    "--to", type=click.Path(path_type=Path), metavar="FILE", help="Write the rows to this JSONL file."
)
@as_json
def failed(
    pipeline: str,
    root: str | None,
    steps: tuple[str, ...],
    classes: tuple[str, ...],
    parked: bool,
    max_attempts: int,
    to: Path | None,
    as_json: bool,
) -> None:
    """The rows that failed: how many of each step and error class, and examples."""
    work = work_of(pipeline, root)
    which = Which(steps, classes, "alone" if parked else "in", max_attempts)
    if to is not None:
        print_line(f"{export_failed(work, which, to)} failed rows in {shown_path(to)}")
    elif as_json:
        click.echo(json_of([_as_json(rows, max_attempts) for rows in failed_rows(work, which)]))
    else:
        _print_failed(work.pipeline.name, list(failed_rows(work, which)), max_attempts)


def _as_json(rows: FailedRows, max_attempts: int) -> dict[str, object]:
    found = [{**row, "parked": _attempts(row) >= max_attempts} for row in rows_of(rows.table)]
    return {"step": rows.step, "batch": rows.batch, "rows": found}


def _attempts(row: dict[str, object]) -> int:
    attempts = row["attempts"]
    assert isinstance(attempts, int)
    return attempts


def _print_failed(pipeline: str, found: Sequence[FailedRows], max_attempts: int) -> None:
    counts: dict[tuple[str, str], list[int]] = {}
    examples: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    for rows in found:
        for row in rows_of(rows.table.select([ROW_ID, *FAILED_COLUMNS])):
            kind = (rows.step, str(row["error_class"]))
            count = counts.setdefault(kind, [0, 0])
            count[0] += 1
            count[1] += _attempts(row) >= max_attempts
            if count[0] <= _EXAMPLES:
                message = shown_value(row["error_message"], _MESSAGE_CHARS)
                examples.setdefault(kind, []).append((*kind, row[ROW_ID], row["attempts"], message))
    if not counts:
        print_line(f"{pipeline}: no such failed rows")
        return
    print_table(
        ("step", "class", "rows", "parked"),
        [(*kind, f"{all_:,}", f"{parked:,}") for kind, (all_, parked) in counts.items()],
        right=("rows", "parked"),
    )
    print_line("")
    lines = [line for some in examples.values() for line in some]
    print_table(("step", "class", "row_id", "attempts", "message"), lines, right=("attempts",))


@click.command("retry-failed")
@pipeline_option
@_steps
@_classes
@click.option("--parked", is_flag=True, help="Parked rows too.")
@_max_attempts
@_serving
@click.pass_context
def retry_failed(
    context: click.Context,
    pipeline: str,
    root: str | None,
    steps: tuple[str, ...],
    classes: tuple[str, ...],
    parked: bool,
    max_attempts: int,
    serving: str | None,
) -> None:
    """Try failed rows again, put them in their place, and redo what depends on them."""
    work = _work(pipeline, root, serving)
    which = Which(steps, classes, "in" if parked else "out", max_attempts)
    for name in steps:
        work.pipeline.step(name)

    def retry(instance: "DagsterInstance", tell: "Callable[[StepRetried], None]") -> object:
        from dataflow_assets.failed_queue.retry import retry_failed

        return retry_failed(work, instance, which, tell=tell)

    _go_on(context, work, retry)


@click.command("put-back")
@pipeline_option
@click.option("--step", required=True, metavar="STEP", help="The step in which the rows failed.")
@click.option("--drop", is_flag=True, help="Take edits back: those of the rows in FILE, or all of the step.")
@_serving
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def put_back(
    context: click.Context,
    pipeline: str,
    root: str | None,
    step: str,
    drop: bool,
    serving: str | None,
    file: Path | None,
) -> None:
    """Take failed rows back as FILE has them, after `failed --to FILE` and an editor; try them again.

    The edits stay beside the step, whatever is run later.
    """
    work = _work(pipeline, root, serving)
    if file is None and not drop:
        raise ConfigError(
            "FILE is missing; `dataflow-assets failed PIPELINE --step STEP --to FILE` writes one"
        )

    def back(instance: "DagsterInstance", tell: "Callable[[StepRetried], None]") -> object:
        from dataflow_assets.failed_queue import put_back

        if drop:
            return put_back.drop_edits(work, instance, step, file, tell)
        assert file is not None
        return put_back.put_back(work, instance, step, file, tell)

    _go_on(context, work, back)


def _work(pipeline: str, root: str | None, serving: str | None) -> PipelineWork:
    return PipelineWork(find_pipeline(pipeline).with_changes(root=root, serving=serving))


def _go_on(context: click.Context, work: PipelineWork, do: "Work") -> None:
    """Runs `do` as `run` does a run; ends with its exit code."""
    print_line(f"{work.pipeline.name}: {shown_path(work.layout.folder)}")
    told: list[StepRetried] = []
    made: list[BatchDone] = []
    with run_display(work) as display, listening(made.append):
        gc.disable()  # as in the package: Dagster is imported here
        from dataflow_assets.home import open_instance

        instance = open_instance(Path.cwd())
        gc.enable()
        gc.freeze()

        def tell(retried: "StepRetried") -> None:
            told.append(retried)
            for line in retried.lines():
                print_line(f"  {line}")

        do(instance, tell)
        display.quiet = bool(told) and not made
    status = status_of(work)
    print_status(status, work.layout.folder)
    if status.failed_rows:
        print_line(f"{status.failed_rows} rows failed; `dataflow-assets failed` lists them")
        context.exit(ROWS_FAILED)
