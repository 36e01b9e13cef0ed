"""Commands that look and change nothing: status, validate, list, sample."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import orjson
import pyarrow as pa

from dataflow_assets.batch import ROW_ID, rows_of
from dataflow_assets.cli.console import pipeline_option, print_line, print_table, shown_counts, work_of
from dataflow_assets.cli.display import print_status
from dataflow_assets.cli.watch import watch_batches, watch_status
from dataflow_assets.errors import ConfigError, DataflowError, MissingBatch
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.preview import shown_value
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline.catalog import usable
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline.problems import printable
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.status import status_of

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: object) -> None:
    """A value as indented JSON."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


@click.command()
@pipeline_option
@as_json
@click.option("--watch", is_flag=True, help="Show it again and again until the run ends, or Ctrl-C.")
def status(pipeline: str, root: str | None, as_json: bool, watch: bool) -> None:
    """Where a pipeline stands: rows and batches of each step, and what is out of date."""
    work = work_of(pipeline, root)
    if watch:
        watch_status(work, as_json)
        return
    found = status_of(work)
    if as_json:
        print_json(found.as_json())
    else:
        print_status(found, work.layout.folder)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
def validate(files: tuple[str, ...]) -> None:
    """Check pipeline files: names, parameters, the graph, and the columns against the real source."""
    problems: list[str] = []
    for file in files:
        found = _problems_of(file)
        if not found:
            print_line(f"{file}: ok")
        problems += found
    if problems:
        raise ConfigError(problems)


def _problems_of(file: str) -> list[str]:
    """What would stop a run of this file before it began, each mistake with the file's name."""
    try:
        PipelineWork(load_pipeline(file)).check_before_run()
    except DataflowError as error:
        where = printable(str(Path(file)))
        lines = error.problems if isinstance(error, ConfigError) else [str(error)]
        return [line if line.startswith(f"{where}:") else f"{where}: {line}" for line in lines]
    return []


@click.command("list")
def list_pipelines() -> None:
    """The pipelines known by name: shipped ones, and those of the folder in DATAFLOW_PIPELINES."""
    pipelines, problems = usable()
    rows = [(name, len(pipeline.steps), pipeline.description) for name, pipeline in pipelines.items()]
    print_table(("name", "steps", "description"), rows, right=("steps",))
    if problems:
        raise ConfigError(problems)


@click.command()
@pipeline_option
@click.argument("step")
@click.option("-n", "rows", default=5, show_default=True, type=click.IntRange(min=1), help="Rows to show.")
@click.option(
    "--diff", is_flag=True, help="Only rows that the step changed, rejected or failed, before and after."
)
@click.option(
    "--watch", is_flag=True, help="Show rows of each batch as it is committed, until the run ends, or Ctrl-C."
)
def sample(pipeline: str, root: str | None, step: str, rows: int, diff: bool, watch: bool) -> None:
    """Rows of a step as it left them, with what they were before."""
    work = work_of(pipeline, root)
    if step != SOURCE:
        work.pipeline.step(step)
    nothing = f"step {step!r} has no such rows yet; `dataflow-assets run {pipeline}` makes them"
    if watch:
        watch_batches(work, step, lambda record: _print_batch(work, step, record, rows, diff), nothing)
        return
    shown = 0
    for key in work.known_manifest().batches:
        shown += _print_rows(work, step, key, rows - shown, diff)
        if shown == rows:
            return
    if not shown:
        print_line(nothing)


def _print_batch(work: PipelineWork, step: str, record: CommitRecord, rows: int, diff: bool) -> None:
    """A line on the batch, then its first rows."""
    rejected, failed = shown_counts(record.rejected), shown_counts(record.failed)
    print_line(
        f"{record.batch}: {record.rows_in:,} rows in, {record.rows_out:,} out, rejected {rejected}, "
        f"failed {failed}"
    )
    print_line("")
    _print_rows(work, step, record.batch, rows, diff)


def _print_rows(work: PipelineWork, step: str, key: str, most: int, diff: bool) -> int:
    """The first rows of a batch; gives how many they are."""
    shown = 0
    for lines in _shown_rows(work, step, key, diff):
        for line in lines:
            print_line(line)
        print_line("")
        shown += 1
        if shown == most:
            break
    return shown


def _shown_rows(work: PipelineWork, step: str, key: str, diff: bool) -> Iterable[list[str]]:
    folder = work.folder_of(step)
    if folder.record(key) is None:
        return
    parts = ("kept", "rejected", "failed") if diff else ("kept",)
    rows = {part: _rows(folder, key, part) for part in parts}
    ids = {str(row[ROW_ID]) for found in rows.values() for row in found}
    before = _rows_before(work, step, key, ids) if diff and step != SOURCE else {}
    for part, found in rows.items():
        for row in found:
            lines = _row_lines(row, before.get(str(row[ROW_ID])), part)
            if not diff or part != "kept" or len(lines) > 1:
                yield lines if diff else _plain_lines(row)


def _rows_before(work: PipelineWork, step: str, key: str, ids: set[str]) -> dict[str, dict[str, object]]:
    """These rows as the step's parent has them: in the same batch, or anywhere where the step moves rows."""
    parent = work.folder_of(work.pipeline.parents(step)[0])
    found: dict[str, dict[str, object]] = {}
    for batch in work.known_manifest().batches if work.pipeline.operator(step).regroups else [key]:
        if not ids <= found.keys():
            found |= {str(row[ROW_ID]): row for row in _rows(parent, batch, "kept") if row[ROW_ID] in ids}
    return found


def _rows(folder: StepFolder, key: str, part: str) -> Sequence[dict[str, object]]:
    try:
        table: pa.Table | None = folder.read(key, part)
    except MissingBatch:
        return []
    return rows_of(table) if table is not None else []


def _plain_lines(row: dict[str, object]) -> list[str]:
    return [
        str(row[ROW_ID]),
        *(f"  {name}: {shown_value(value, 400)}" for name, value in row.items() if name != ROW_ID),
    ]


def _row_lines(row: dict[str, object], before: dict[str, object] | None, part: str) -> list[str]:
    """What became of a row: the columns that differ from before, as `-` and `+` lines."""
    lines = [f"{row[ROW_ID]}{'' if part == 'kept' else f' {part}'}"]
    for name, value in row.items():
        old = (before or {}).get(name)
        if name == ROW_ID or (name in (before or {}) and _is_same(old, value)):
            continue
        if name in (before or {}):
            lines.append(f"  - {name}: {shown_value(old, 400)}")
        lines.append(f"  + {name}: {shown_value(value, 400)}")
    return lines


def _is_same(old: object, value: object) -> bool:
    """Whether a value is as it was; NaN, which equals nothing, is."""
    return old == value or (old != old and value != value)
