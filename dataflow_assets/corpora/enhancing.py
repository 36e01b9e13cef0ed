"""Enhancement of a data set in place: turns are read, go through operators, and columns are written back.

The ids that a task works on are fixed when it begins, and its cursor moves in the transaction that writes
the turns. So a task that is killed goes on behind the last batch that it wrote, ends, and never meets
rows that came later.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, Row, select

from dataflow_assets.batch import ROW_ID, Schema, rows_of, table_of
from dataflow_assets.control import StopFlag
from dataflow_assets.corpora.cursors import (
    Cursor,
    Left,
    TaskKey,
    advance_cursor,
    begin_cursor,
    find_cursor,
    forget_cursor,
    keep_left,
    rows_in_range,
)
from dataflow_assets.corpora.lease import WAIT_S, task_lease
from dataflow_assets.corpora.store import Corpora, Dataset
from dataflow_assets.corpora.tables import DATA_COLUMNS, NAME_CHARS, STAGE_CHARS, TURNS
from dataflow_assets.corpora.writing import unfit, write_back
from dataflow_assets.errors import ConfigError, ConservationError, CorpusError
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.operators.operator import REJECT_REASON, Operator, RowOperator

TYPE = "enhance"
BATCH_ROWS = 1000
TURN_COLUMNS: Schema = {
    ROW_ID: "string",
    "row_identifier": "int64",
    "turn_taking": "int64",
    **{name: "float64" if name == "data_weight" else "string" for name in DATA_COLUMNS},
}


class Enhancement(NamedTuple):
    """What is done to a data set: operators, one after the other, under a name.

    `write` are the columns of turns that are written back; `batch_rows` turns go in one transaction.
    """

    dataset: str
    task: str
    operators: Sequence[RowOperator]
    write: Sequence[str]
    stage: str = "main"
    batch_rows: int = BATCH_ROWS

    def fingerprint(self) -> str:
        """What decides the values that are written."""
        parts = [
            [one.name, one.version, dict(one.fingerprint_of_params()), dict(one.identity())]
            for one in self.operators
        ]
        return hash_of([parts, sorted(self.write)])


def enhancement(
    dataset: str,
    task: str,
    operators: Sequence[Operator],
    write: Sequence[str] = (),
    stage: str = "main",
    batch_rows: int = BATCH_ROWS,
) -> Enhancement:
    """The enhancement, checked before anything is read. Raises ConfigError.

    Without `write` the columns of turns that the operators change are written.
    """
    schema, touched = dict(TURN_COLUMNS), set[str]()
    fit: list[RowOperator] = []
    for operator in operators:
        if not isinstance(operator, RowOperator) or operator.splits or operator.regroups:
            raise ConfigError(
                f"operator {operator.name!r} cannot work on turns in place; expected one that gives a row "
                "for each row and looks at no other: use the data set as the source of a pipeline"
            )
        if missing := [name for name in operator.reads() if name not in schema]:
            raise ConfigError(
                f"operator {operator.name!r} reads {', '.join(missing)}, which is not there; found "
                f"{', '.join(schema)}"
            )
        touched |= operator.touched(schema)
        schema = dict(operator.output_schema(schema))
        operator.check_ready()
        fit.append(operator)
    chosen = sorted(write or touched & set(DATA_COLUMNS))
    if unknown := [name for name in chosen if name not in DATA_COLUMNS or name not in schema]:
        raise ConfigError(
            f"{', '.join(unknown)} cannot be written back; expected some of {', '.join(DATA_COLUMNS)}"
        )
    if not chosen or not fit:
        raise ConfigError(
            f"the operators change no column of turns, found {', '.join(sorted(touched)) or 'none'}; "
            f"expected some of {', '.join(DATA_COLUMNS)}"
        )
    if not 0 < len(task) <= NAME_CHARS or not 0 < len(stage) <= STAGE_CHARS:
        raise ConfigError(
            f"the task {task!r} or stage {stage!r} has no name or a long one; expected at most {NAME_CHARS} "
            f"and {STAGE_CHARS} characters"
        )
    return Enhancement(dataset, task, fit, chosen, stage, batch_rows)


def enhance(
    corpora: Corpora,
    dataset: Dataset,
    work: Enhancement,
    stop: StopFlag,
    told: Callable[[Cursor], None] = lambda cursor: None,
    wait_s: float = WAIT_S,
) -> Cursor:
    """Does the task, or what is left of it; where it ended. Soft-deleted turns are passed over.

    `told` is given the cursor after each batch. Raises TaskBusy while another worker has the task,
    ConfigError where the task was begun with other operators, CorpusError where rows came into the range
    or went from it, and Stopped between two batches.
    """
    with task_lease(corpora.database, work.task, wait_s) as connection:
        key = TaskKey(work.task, work.stage, TYPE, dataset.id)
        cursor = corpora.database.write(lambda on: _begun(on, key, work.fingerprint()), connection)
        while not cursor.is_done:
            stop.raise_if_up()
            cursor = _next_batch(corpora, dataset, work, cursor, connection)
            told(cursor)
        return cursor


def forget_task(corpora: Corpora, dataset: Dataset, task: str, stage: str) -> None:
    """A task as if it had never begun; what it wrote stays. Raises TaskBusy, ConfigError without it."""
    key = TaskKey(task, stage, TYPE, dataset.id)

    def forget(connection: Connection) -> None:
        if find_cursor(connection, key) is None:
            raise ConfigError(
                f"there is no task {task!r} with stage {stage!r} on {dataset.name!r}; `dataflow-assets "
                "corpus tasks` lists them"
            )
        forget_cursor(connection, key)

    with task_lease(corpora.database, task) as connection:
        corpora.database.write(forget, connection)


def _begun(connection: Connection, key: TaskKey, fingerprint: str) -> Cursor:
    cursor = find_cursor(connection, key)
    if cursor is None:
        return begin_cursor(connection, key, fingerprint)
    if cursor.fingerprint != fingerprint:
        raise ConfigError(
            f"the task {key.task!r}, stage {key.stage!r}, was begun with other operators or parameters and "
            f"has done {cursor.processed} of {cursor.rows_before} turns; name another task or stage, or "
            "forget this one with `dataflow-assets corpus forget`"
        )
    return cursor


def _next_batch(
    corpora: Corpora, dataset: Dataset, work: Enhancement, cursor: Cursor, connection: Connection
) -> Cursor:
    """One batch: read, worked on, and written with the cursor in one transaction."""
    database = corpora.database
    with database.errors("read"):
        turns = _read(connection, cursor, work.batch_rows)
        connection.rollback()
    result = _worked(turns, work)

    def write(on: Connection) -> Cursor:
        write_back(on, dataset.id, result.changes)
        keep_left(on, cursor.key, result.left)
        kinds = [one.kind for one in result.left]
        is_done = len(turns) < work.batch_rows
        moved = advance_cursor(
            on,
            cursor,
            offset_key=cursor.last_key if is_done else turns[-1].id,
            processed=cursor.processed + len(turns),
            changed=cursor.changed + len(result.changes),
            rejected=cursor.rejected + kinds.count("rejected"),
            failed=cursor.failed + kinds.count("failed"),
            is_done=is_done,
        )
        if is_done:
            _check_count(on, moved)
        return moved

    return database.write(write, connection)


def _read(connection: Connection, cursor: Cursor, limit: int) -> Sequence[Row[Any]]:
    turn = TURNS.c
    left = turn.id > cursor.offset_key, turn.id <= cursor.last_key, turn.is_deleted.is_(False)
    of = turn.dataset_file_id == cursor.dataset_file_id
    return connection.execute(select(TURNS).where(of, *left).order_by(turn.id).limit(limit)).all()


def _check_count(connection: Connection, cursor: Cursor) -> None:
    found = rows_in_range(connection, cursor)
    if found != cursor.rows_before:
        raise CorpusError(
            f"the task {cursor.task!r} began with {cursor.rows_before} turns and ends with {found} in the "
            f"ids {cursor.first_key} to {cursor.last_key}; expected as many: something else has added or "
            "removed rows, and the last batch was not written"
        )


class _Worked(NamedTuple):
    changes: list[Mapping[str, object]]
    left: list[Left]


def _worked(turns: Sequence[Row[Any]], work: Enhancement) -> _Worked:
    """The changes of a batch, and the turns that stay as they are. Raises ConservationError."""
    table = turns_table(turns)
    left: list[Left] = []
    for operator in work.operators:
        rows = table.num_rows
        table, rejected, failed = operator.apply(table)
        left += _left(rejected, "rejected") + _left(failed, "failed")
        gone = sum(part.num_rows for part in (rejected, failed) if part is not None)
        if rows != table.num_rows + gone:
            raise ConservationError(
                f"operator {operator.name!r} was given {rows} turns and gave {table.num_rows + gone} back; "
                "nothing of the batch was written"
            )
    revisions = {str(turn.id): turn.revision for turn in turns}
    changes: list[Mapping[str, object]] = []
    for row in rows_of(table.select([ROW_ID, *work.write])):
        id = str(row.pop(ROW_ID))
        change = {"id": int(id), "revision": revisions[id], **row}
        if (reason := unfit(change)) is None:
            changes.append(change)
        else:
            left.append(Left(int(id), "failed", f"UnwritableValue: {reason}"))
    return _Worked(changes, left)


def _left(part: pa.Table | None, kind: str) -> list[Left]:
    if part is None:
        return []
    names = [REJECT_REASON] if kind == "rejected" else ["error_class", "error_message"]
    reasons = zip(*(part[name].to_pylist() for name in names), strict=True)
    ids = part[ROW_ID].to_pylist()
    return [
        Left(int(id), kind, ": ".join(map(str, reason)).replace("\0", "\ufffd"))
        for id, reason in zip(ids, reasons, strict=True)
    ]


def turns_table(turns: Sequence[Row[Any]]) -> pa.Table:
    """Turns as a table: `row_id` is the id of the turn, then its place and its data columns."""
    columns = {name: [getattr(turn, name) for turn in turns] for name in TURN_COLUMNS if name != ROW_ID}
    return table_of({ROW_ID: [str(turn.id) for turn in turns], **columns}, TURN_COLUMNS)
