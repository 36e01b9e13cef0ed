"""`dataflow-assets trace`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from dataflow_assets.batch import ROW_ID
from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.cli.look_commands import as_json
from dataflow_assets.io.preview import shown_value
from dataflow_assets.pipeline_work import SOURCE, PipelineWork

if TYPE_CHECKING:
    from dataflow_assets.trace.life import Descendant, Passage, RowLife

_VALUE_CHARS = 400
_MAX_DESCENDANTS = 20


@click.command()
@pipeline_option
@click.argument("row_id", metavar="ROW_ID")
@as_json
def trace(pipeline: str, root: str | None, row_id: str, as_json: bool) -> None:
    """The life of one row: where it came from, what each step changed, and where it ended."""
    from dataflow_assets.failed_queue.rows_file import as_json as json_of
    from dataflow_assets.trace.life import life_of

    work = work_of(pipeline, root)
    life = life_of(work, row_id)
    if as_json:
        click.echo(json_of(asdict(life)))
        return
    for line in _lines(work, life):
        print_line(line)


def _lines(work: PipelineWork, life: "RowLife") -> Iterator[str]:
    where = f"{life.place}; " if life.place else f"made by step {life.began!r}; "
    yield f"{life.row_id}: {where}batch {life.batch}"
    if life.unreadable is not None:
        yield f"  no row: {life.unreadable}"
        yield from _values({"line": life.row.get("raw")})
        return
    yield from _values(life.row)
    for passage in life.passages:
        yield f"{passage.step} {passage.name} ({passage.type}): {_outcome(passage)}"
        for column, value in passage.edits.items():
            yield f"  by hand {column}: {shown_value(value, _VALUE_CHARS)}"
        for change in passage.changes:
            if change.before is not None:
                yield f"  - {change.column}: {shown_value(change.before, _VALUE_CHARS)}"
            yield f"  + {change.column}: {shown_value(change.after, _VALUE_CHARS)}"
        yield from _values(passage.details)
        if passage.error_message:
            yield f"  {shown_value(passage.error_message, _VALUE_CHARS)}"
        yield from _pair(work, passage)
    yield from _descendants(life.descendants)


def _values(row: Mapping[str, object]) -> Iterator[str]:
    return (
        f"  {name}: {shown_value(value, _VALUE_CHARS)}"
        for name, value in row.items()
        if name != ROW_ID and value is not None
    )


def _outcome(passage: "Passage") -> str:
    if passage.outcome == "kept":
        return "changed" if passage.changes else "kept as it was"
    if passage.outcome == "rejected":
        return f"rejected: {passage.reason}"
    if passage.outcome == "failed":
        times = "" if passage.attempts is None else f", attempts {passage.attempts}"
        return f"failed: {passage.error_class}{times}"
    if passage.outcome == "split":
        return f"split into {_rows(len(passage.children))}"
    return {
        "gone": "no row with this id came out; the step makes rows of its own",
        "not_made": "its batch is not made yet; run the pipeline",
        "not_read": "not read",
    }[passage.outcome]


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _pair(work: PipelineWork, passage: "Passage") -> Iterator[str]:
    """The row that a rejected duplicate repeats, as far as the step looks at it."""
    from dataflow_assets.operators.deduplication.verdicts import DUPLICATE_OF
    from dataflow_assets.trace.life import read_by

    other = passage.details.get(DUPLICATE_OF)
    if not isinstance(other, str):
        return
    row = read_by(work, passage.name, other) or {}
    for name in work.pipeline.operator(passage.name).reads() if row else ():
        yield f"  {other} has {name}: {shown_value(row.get(name), _VALUE_CHARS)}"


def _descendants(rows: "list[Descendant]") -> Iterator[str]:
    if rows:
        yield f"{_rows(len(rows))} came of it:"
    for each in rows[:_MAX_DESCENDANTS]:
        reason = f": {each.reason}" if each.reason else ""
        at = "" if each.step == SOURCE else f" in {each.step}"
        yield f"  {each.row_id} {each.outcome}{at}{reason}"
    if len(rows) > _MAX_DESCENDANTS:
        yield f"  and {len(rows) - _MAX_DESCENDANTS} more; --json has all"
