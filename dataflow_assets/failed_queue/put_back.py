"""Takes edited rows back: checks them against the failed rows, keeps the edits, tries the rows again."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from dagster import DagsterInstance

from dataflow_assets.batch import ROW_ID, ColumnType, json_text, rows_of, schema_of
from dataflow_assets.control import pipeline_lock
from dataflow_assets.errors import ConfigError
from dataflow_assets.failed_queue.edits import Edit, fitting
from dataflow_assets.failed_queue.homes import origins_of
from dataflow_assets.failed_queue.retry import StepRetried, retry_failed
from dataflow_assets.failed_queue.rows_file import read_rows
from dataflow_assets.failed_queue.selection import stored_failed
from dataflow_assets.io.step_folder import PARTS
from dataflow_assets.operators.operator import FAILED_COLUMNS, DatasetOperator
from dataflow_assets.pipeline.problems import listed, near_names
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.step_work import StepWork
from dataflow_assets.task_state import TaskStore

Rows = Mapping[str, Mapping[str, object]]
Tell = Callable[[StepRetried], None]


@dataclass
class _Changes:
    """By batch and row: the new values, or None for an edit that goes; and what is wrong."""

    edits: dict[str, dict[str, Edit | None]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def put_back(
    work: PipelineWork,
    instance: DagsterInstance,
    step: str,
    file: Path,
    tell: Tell = lambda retried: None,
    run_id: str | None = None,
) -> list[StepRetried]:
    """Reads the failed rows of the step from now on as the file has them, and tries them again.

    Columns that the file lacks stay as they are; those that say why a row failed are not looked at.
    Attempts count from zero. Raises ConfigError, and changes nothing, where a row did not fail, a
    column is unknown or a value has the wrong type; else what `retry_failed` raises. `run_id` is that of
    the run which Dagster launched for this, if one was.
    """
    bound = _row_step(work, step)
    rows = read_rows(file)
    TaskStore(instance, work.layout.folder).raise_if_paused()
    with pipeline_lock(work.layout.folder):
        changes = _changes(bound, work.known_manifest().batches, rows)
        return _kept_and_tried(work, instance, bound, changes, tell, run_id)


def drop_edits(
    work: PipelineWork,
    instance: DagsterInstance,
    step: str,
    file: Path | None = None,
    tell: Tell = lambda retried: None,
    run_id: str | None = None,
) -> list[StepRetried]:
    """Takes back the edits of the rows in the file, or all of the step, and does those rows again.

    Raises ConfigError, and changes nothing, where a row has no edit.
    """
    bound = _row_step(work, step)
    wanted = None if file is None else read_rows(file).keys()
    TaskStore(instance, work.layout.folder).raise_if_paused()
    with pipeline_lock(work.layout.folder):
        changes = _Changes()
        for key in work.known_manifest().batches:
            edited = {row_id for row_id, edit in bound.edits.of(key).values.items() if edit}
            gone = edited if wanted is None else edited & wanted
            if gone:
                changes.edits[key] = dict.fromkeys(sorted(gone))
        found = set().union(*changes.edits.values())
        for row_id in sorted(wanted - found) if wanted is not None else ():
            changes.problems.append(f"row {row_id} of step {step!r} has no edit that could be taken back")
        return _kept_and_tried(work, instance, bound, changes, tell, run_id)


def _row_step(work: PipelineWork, name: str) -> StepWork:
    bound = work.step(work.pipeline.step(name))
    if isinstance(bound.operator, DatasetOperator):
        raise ConfigError(
            f"step {name!r} decides over all rows, so none of its rows is edited alone; edit them in a step "
            "before it"
        )
    return bound


def _kept_and_tried(
    work: PipelineWork,
    instance: DagsterInstance,
    step: StepWork,
    changes: _Changes,
    tell: Tell,
    run_id: str | None,
) -> list[StepRetried]:
    if changes.problems:
        raise ConfigError([*changes.problems, "nothing was changed"])
    for key, edits in changes.edits.items():
        record = step.folder.record(key)
        known = step.edits.of(key)
        applied = record is not None and record.fingerprint == step.fingerprint(key)
        edited = [row_id for row_id, edit in edits.items() if edit is not None]
        origins = origins_of(work.layout.step(0), key, edited)
        step.edits.commit(key, known.with_changes(edits, applied, origins))
    rows = {key: frozenset(edits) for key, edits in changes.edits.items()}
    return retry_failed(work, instance, None, {step.name: rows}, tell, run_id)


def _changes(step: StepWork, keys: Sequence[str], rows: Rows) -> _Changes:
    changes = _Changes()
    left = dict(rows)
    for key in keys:
        failed = stored_failed(step.folder, key)
        ids = failed[ROW_ID].to_pylist() if failed is not None else []
        mine = {row_id: left.pop(row_id) for row_id in ids if row_id in left}
        if mine:
            assert failed is not None
            _add_batch(changes, step, key, mine, failed.column_names)
    for key in keys if left else ():
        for row_id in _put_back_before(step, key, left):
            del left[row_id]
    changes.problems += _strangers(step, keys, left)
    return changes


def _add_batch(
    changes: _Changes, step: StepWork, key: str, rows: Rows, failed_columns: Collection[str]
) -> None:
    """Adds the edits of one batch, and every column or value that does not fit what the step reads."""
    table = _only(step.rows(key).table, rows)
    schema = schema_of(table)
    ignored = {ROW_ID, *FAILED_COLUMNS, *failed_columns} - (schema.keys() - {ROW_ID})
    edits: dict[str, Edit | None] = {}
    for now in rows_of(table):
        row_id = str(now[ROW_ID])
        edit: dict[str, object] = {}
        for name, value in rows[row_id].items():
            if name in ignored:
                continue
            try:
                edit.update(_edited(name, value, now, schema))
            except ValueError as error:
                changes.problems.append(f"row {row_id}, column {name!r}: {error}")
        edits[row_id] = edit
    changes.edits[key] = edits


def _edited(
    name: str, value: object, now: Mapping[str, object], schema: Mapping[str, ColumnType]
) -> Mapping[str, object]:
    """The new value, or nothing where it is the value that the row has. Raises ValueError."""
    if name not in schema:
        raise ValueError(f"the step reads no such column, only {listed(schema)}{near_names(name, schema)}")
    fit = fitting(value, schema[name])
    return {} if _same(fit, now[name]) else {name: fit}


def _same(first: object, second: object) -> bool:
    try:
        return json_text(first) == json_text(second)
    except ValueError:  # NaN and infinity, which no file can hold
        return False


def _only(table: pa.Table, row_ids: Collection[str]) -> pa.Table:
    return table.filter(pc.is_in(table[ROW_ID], pa.array(sorted(row_ids), pa.large_string())))


def _put_back_before(step: StepWork, key: str, rows: Rows) -> Iterator[str]:
    """Rows that the same file has put back already: the command was killed after that."""
    known = step.edits.of(key).values
    mine = {row_id: rows[row_id] for row_id in rows if known.get(row_id) is not None}
    if not mine:
        return
    again = _Changes()
    _add_batch(again, step, key, mine, [])
    for row_id, edit in again.edits[key].items():
        if edit == {}:
            yield row_id


def _strangers(step: StepWork, keys: Sequence[str], rows: Rows) -> list[str]:
    """One line for each row that cannot be put back, because it did not fail or is not known."""
    fate = {}
    for key in keys if rows else ():
        for part in PARTS[:2]:
            table = step.folder.read(key, part) if step.folder.record(key) is not None else None
            if table is not None:
                fate.update(dict.fromkeys(_only(table, rows)[ROW_ID].to_pylist(), part))
    return [
        f"row {row_id} did not fail in step {step.name!r}: it is {fate[row_id]}"
        if row_id in fate
        else f"row {row_id} is not among the failed rows of step {step.name!r}"
        for row_id in rows
    ]
