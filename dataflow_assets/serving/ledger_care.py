"""Looks at a ledger as a whole and keeps it small: its numbers, pruning, export."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Row, and_, delete, func, literal, or_, select

from dataflow_assets.io.atomic import make_folder, publish, storage_errors, sync_folder, temporary
from dataflow_assets.serving.ledger_database import LedgerDatabase
from dataflow_assets.serving.ledger_tables import ANSWERS, HITS

_ROWS_AT_ONCE = 1000
_KEYS_AT_ONCE = 5000


class ModelStats(NamedTuple):
    """The answers of one model: tokens and cost they took, bytes they take, times of making (epoch s).

    `hits` counts the look-ups that found an answer, also those of answers that are gone.
    """

    model: str
    answers: int
    tokens_in: int
    tokens_out: int
    cost: float
    bytes: int
    oldest: float
    newest: float
    hits: int


class Pruned(NamedTuple):
    """How many answers were removed and kept, and how many bytes the kept ones take."""

    removed: int
    kept: int
    bytes: int


class _Mark(NamedTuple):
    """A place in the order of last use."""

    used_at: float
    key: str


def ledger_stats(database: LedgerDatabase) -> list[ModelStats]:
    """One line for each model that has answers, by name."""
    columns = ANSWERS.c
    hits = select(HITS.c.hits).where(HITS.c.model == columns.model).scalar_subquery()
    numbers = (
        func.count(),
        *map(func.sum, (columns.tokens_in, columns.tokens_out, columns.cost, columns.bytes)),
        func.min(columns.created_at),
        func.max(columns.created_at),
        func.coalesce(hits, 0),
    )
    query = select(columns.model, *numbers).group_by(columns.model).order_by(columns.model)
    with database.reading() as connection:
        return [_stats_of(*row) for row in connection.execute(query)]


def _stats_of(model: str, *numbers: Any) -> ModelStats:
    """The line of a row; PostgreSQL gives sums as decimals."""
    counts = (int(number) for number in numbers)
    return ModelStats(model, *counts)._replace(cost=numbers[3], oldest=numbers[5], newest=numbers[6])


def prune_ledger(database: LedgerDatabase, before: float | None, max_bytes: int | None) -> Pruned:
    """Removes the answers last used before that time (epoch s), then the oldest above `max_bytes`."""
    marks = [_Mark(before, "")] if before is not None else []
    if max_bytes is not None and (mark := _mark_of_size(database, max_bytes)):
        marks.append(mark)
    removed = _remove_up_to(database, max(marks)) if marks else 0
    if removed and database.file:
        database.shrink()
    with database.reading() as connection:
        count, size = connection.execute(select(func.count(), func.sum(ANSWERS.c.bytes))).one()
    return Pruned(removed, count, int(size or 0))


def _mark_of_size(database: LedgerDatabase, max_bytes: int) -> _Mark | None:
    """The answer used last among those that do not fit into this size."""
    order = ANSWERS.c.used_at.desc(), ANSWERS.c.key.desc()
    running = func.sum(ANSWERS.c.bytes).over(order_by=order, rows=(None, 0)).label("running")
    sizes = select(ANSWERS.c.used_at, ANSWERS.c.key, running).subquery()
    above = select(sizes.c.used_at, sizes.c.key).where(sizes.c.running > max_bytes)
    with database.reading() as connection:
        row = connection.execute(
            above.order_by(sizes.c.used_at.desc(), sizes.c.key.desc()).limit(1)
        ).one_or_none()
    return _Mark(*row) if row else None


def _remove_up_to(database: LedgerDatabase, mark: _Mark) -> int:
    """Removes in small transactions, in the order of the keys: other processes write in between.

    A row that another process is writing is left: it is in use.
    """
    used_at, key = ANSWERS.c.used_at, ANSWERS.c.key
    old = or_(used_at < mark.used_at, and_(used_at == mark.used_at, key <= mark.key))
    removed, after = 0, ""
    while True:
        with database.writing() as connection:
            batch = select(key).where(old, key > literal(after)).order_by(key).limit(_KEYS_AT_ONCE)
            keys = connection.execute(batch.with_for_update(skip_locked=True)).scalars().all()
            if keys:
                connection.execute(delete(ANSWERS).where(key.in_(keys)))
        removed += len(keys)
        if len(keys) < _KEYS_AT_ONCE:
            return removed
        after = keys[-1]


def export_ledger(database: LedgerDatabase, path: Path) -> int:
    """Writes a line of JSON for each answer, oldest first; returns how many. Whole or not at all."""
    count = 0
    make_folder(path.absolute().parent)
    with storage_errors(path), open(temporary(path), "wb") as file:
        for line in _lines(database):
            file.write(line)
            count += 1
    publish(path)
    sync_folder(path.absolute().parent)
    return count


def _lines(database: LedgerDatabase) -> Iterator[bytes]:
    order = ANSWERS.c.created_at, ANSWERS.c.key
    with database.reading() as connection:
        rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(ANSWERS).order_by(*order))
        for row in rows:
            yield orjson.dumps(_exported(row), option=orjson.OPT_APPEND_NEWLINE)


def _exported(row: Row[Any]) -> dict[str, object]:
    answer = orjson.loads(row.answer)
    return {
        "key": row.key,
        "model": row.model,
        "pipeline": row.pipeline,
        "step": row.step,
        "request": orjson.loads(row.request) if row.request is not None else None,
        "texts": answer["texts"],
        "vector": answer["vector"],
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost": row.cost,
        "created_at": row.created_at,
    }
