"""How far a task has come with a data set: kept in the database, moved with the rows that it stands for."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from dataflow_assets.corpora.lease import worker_name
from dataflow_assets.corpora.tables import CURSORS, LEFT, TURNS
from dataflow_assets.errors import CorpusError


class TaskKey(NamedTuple):
    """A task, a stage of it, what kind of work it is, and the data set that it works on."""

    task: str
    stage: str
    type: str
    dataset_file_id: int


class Cursor(NamedTuple):
    """Where a task stands. Keys are ids of turns, or numbers of records for an import.

    Rows from `first_key` to `last_key` are worked on, fixed at the start, `offset_key` is the last one
    done. `rows_before` is how many there were; `processed` are `changed`, `rejected` and `failed`.
    `fingerprint` says what the work is.
    """

    task: str
    stage: str
    type: str
    dataset_file_id: int
    fingerprint: str
    first_key: int
    last_key: int
    offset_key: int
    rows_before: int
    processed: int
    changed: int
    rejected: int
    failed: int
    worker: str
    changed_at: float
    is_done: bool

    @property
    def key(self) -> TaskKey:
        """Which task it is."""
        return TaskKey(*self[:4])


class Left(NamedTuple):
    """A turn that a task left as it was: `kind` is rejected or failed."""

    turn_id: int
    kind: str
    reason: str


def find_cursor(connection: Connection, key: TaskKey) -> Cursor | None:
    """Where the task stands, or None where it never began."""
    row = connection.execute(select(CURSORS).where(*_is(key))).one_or_none()
    return None if row is None else Cursor(**row._mapping)


def begin_cursor(
    connection: Connection, key: TaskKey, fingerprint: str, last_key: int | None = None
) -> Cursor:
    """The task at its start. Without `last_key` it works on the turns that the data set has now."""
    first, last, rows = 1, last_key or 0, 0
    if last_key is None:
        turn = TURNS.c.id
        of = TURNS.c.dataset_file_id == key.dataset_file_id
        bounds = select(func.min(turn), func.max(turn), func.count()).where(of)
        low, high, rows = connection.execute(bounds).one()
        first, last = low or 1, high or 0
    new = Cursor(
        *key, fingerprint, first, last, first - 1, rows, 0, 0, 0, 0, worker_name(), time.time(), False
    )
    forget_cursor(connection, key)
    connection.execute(insert(CURSORS), new._asdict())
    return new


def advance_cursor(connection: Connection, cursor: Cursor, **changes: Any) -> Cursor:
    """Moves the cursor, in the transaction that writes the rows. Raises CorpusError where another did."""
    moved = cursor._replace(**changes, worker=worker_name(), changed_at=time.time())
    as_it_was = CURSORS.c.offset_key == cursor.offset_key, CURSORS.c.processed == cursor.processed
    values = dict(list(moved._asdict().items())[4:])
    if connection.execute(update(CURSORS).where(*_is(cursor.key), *as_it_was).values(values)).rowcount != 1:
        raise CorpusError(
            f"the cursor of task {cursor.task!r} is no longer at {cursor.offset_key}: another worker has "
            "gone on with it; nothing was written"
        )
    return moved


def forget_cursor(connection: Connection, key: TaskKey) -> None:
    """The task as if it had never begun; the rows stay."""
    connection.execute(delete(CURSORS).where(*_is(key)))
    connection.execute(delete(LEFT).where(*(LEFT.c[name] == value for name, value in key._asdict().items())))


def keep_left(connection: Connection, key: TaskKey, left: Sequence[Left]) -> None:
    """Notes turns that were left as they were."""
    if left:
        connection.execute(insert(LEFT), [{**key._asdict(), **one._asdict()} for one in left])


def rows_in_range(connection: Connection, cursor: Cursor) -> int:
    """How many turns the range of a task has now."""
    within = TURNS.c.id.between(cursor.first_key, cursor.last_key)
    of = TURNS.c.dataset_file_id == cursor.dataset_file_id
    return connection.execute(select(func.count()).where(of, within)).scalar_one()


def _is(key: TaskKey) -> list[Any]:
    return [CURSORS.c[name] == value for name, value in key._asdict().items()]
