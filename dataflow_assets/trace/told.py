"""The life of a row in words a person reads: what each step made of it, and its values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dataflow_assets.batch import ROW_ID
from dataflow_assets.io.preview import shown_value
from dataflow_assets.operators.deduplication.verdicts import DUPLICATE_OF
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.trace.life import Descendant, Passage, RowLife, read_by

_VALUE_CHARS = 400
_MAX_DESCENDANTS = 20


class Told(NamedTuple):
    """One station of a row's life, and the lines that belong to it; control characters are escaped."""

    what: str
    lines: Sequence[str]


def told_life(work: PipelineWork, life: RowLife) -> Iterator[Told]:
    """Where the row came from, each step that it reached, and what it was split into."""
    where = f"{life.place}; " if life.place else f"made by step {life.began!r}; "
    began = f"{life.row_id}: {where}batch {life.batch}"
    if life.unreadable is not None:
        yield Told(began, [f"no row: {life.unreadable}", *_values({"line": life.row.get("raw")})])
        return
    yield Told(began, list(_values(life.row)))
    for passage in life.passages:
        what = f"{passage.step} {passage.name} ({passage.type}): {_outcome(passage)}"
        yield Told(what, list(_lines(work, passage)))
    if life.descendants:
        yield Told(f"{_rows(len(life.descendants))} came of it:", list(_descendants(life.descendants)))


def _lines(work: PipelineWork, passage: Passage) -> Iterator[str]:
    for column, value in passage.edits.items():
        yield f"by hand {column}: {shown_value(value, _VALUE_CHARS)}"
    for change in passage.changes:
        if change.before is not None:
            yield f"- {change.column}: {shown_value(change.before, _VALUE_CHARS)}"
        yield f"+ {change.column}: {shown_value(change.after, _VALUE_CHARS)}"
    yield from _values(passage.details)
    if passage.error_message:
        yield shown_value(passage.error_message, _VALUE_CHARS)
    yield from _pair(work, passage)


def _values(row: Mapping[str, object]) -> Iterator[str]:
    return (
        f"{name}: {shown_value(value, _VALUE_CHARS)}"
        for name, value in row.items()
        if name != ROW_ID and value is not None
    )


def _outcome(passage: Passage) -> str:
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


def _pair(work: PipelineWork, passage: Passage) -> Iterator[str]:
    """The row that a rejected duplicate repeats, as far as the step looks at it."""
    other = passage.details.get(DUPLICATE_OF)
    if not isinstance(other, str):
        return
    row = read_by(work, passage.name, other) or {}
    for name in work.pipeline.operator(passage.name).reads() if row else ():
        yield f"{other} has {name}: {shown_value(row.get(name), _VALUE_CHARS)}"


def _descendants(rows: Sequence[Descendant]) -> Iterator[str]:
    for each in rows[:_MAX_DESCENDANTS]:
        reason = f": {each.reason}" if each.reason else ""
        at = "" if each.step == SOURCE else f" in {each.step}"
        yield f"{each.row_id} {each.outcome}{at}{reason}"
    if len(rows) > _MAX_DESCENDANTS:
        yield f"and {len(rows) - _MAX_DESCENDANTS} more; `trace --json` has all"
