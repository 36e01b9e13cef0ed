"""The ledger: every answer that was paid for, durable, and all that was spent."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from sqlalchemy import URL, Select, and_, delete, func, select, true

from dataflow_assets.databases.places import file_url
from dataflow_assets.errors import LedgerError
from dataflow_assets.serving.asking import Where
from dataflow_assets.serving.calls import Answer, Call
from dataflow_assets.serving.grouped import Grouped
from dataflow_assets.serving.ledger_care import ModelStats, Pruned, export_ledger, ledger_stats, prune_ledger
from dataflow_assets.serving.ledger_changes import Billed, Change, Kept, Leased, Used, write_changes
from dataflow_assets.serving.ledger_database import LedgerDatabase, ledger_url
from dataflow_assets.serving.ledger_tables import DAY_S, LEASES, SLOT_S, SPEND, Statements

__all__ = ["LOST", "Ledger", "ModelStats", "Pruned", "Spent", "Where"]

LOST = "lost"
_AT_ONCE = 500
_MOST_TOKENS = 10**12
# What a row takes in the database beside its answer and request.
_ROW_BYTES = 250


class Spent(NamedTuple):
    """What calls took; `cost` is in the currency of the prices."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost: float


class _Found(NamedTuple):
    answer: bytes
    model: str
    used_at: float


class Ledger:
    """Answers by the key of their call, and what was spent, in SQLite or PostgreSQL.

    Any number of processes, threads and event loops may use one at the same time. Everything raises
    LedgerError where the database cannot do it. `store_requests` keeps what was asked beside the
    answer, for `export`. `clock` gives the time in epoch seconds. `create=False` refuses where there
    is no ledger yet.
    """

    def __init__(
        self,
        url: str | URL,
        *,
        store_requests: bool = False,
        create: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        url = ledger_url(url) if isinstance(url, str) else url
        self._database = LedgerDatabase(url, create)
        self._statements = Statements.of(self._database.engine.dialect.name)
        self._store_requests = store_requests
        self._clock = clock
        self._reader: Grouped[str, bytes | None] = Grouped("ledger reader", self._look_up, _AT_ONCE)
        self._writer: Grouped[Change, None] = Grouped("ledger writer", self._write, _AT_ONCE)

    @classmethod
    def at(
        cls,
        path: Path,
        *,
        store_requests: bool = False,
        create: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> "Ledger":
        """The ledger in this SQLite file; made with its folder where there is none."""
        return cls(file_url(path), store_requests=store_requests, create=create, clock=clock)

    @property
    def place(self) -> str:
        """The file or the server and database, for messages."""
        return self._database.place

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what is waiting and ends the connections."""
        self._reader.close()
        self._writer.close()
        self._database.close()

    async def get(self, key: str) -> Answer | None:
        """The answer kept under this key. Look-ups that wait at the same time are one query."""
        data = await self._reader.ask(key)
        if data is None:
            return None
        try:
            return Answer.from_bytes(data)
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                f"the ledger {self.place} holds something under {key} that is no answer: {error}; "
                "run with --fresh to ask again"
            ) from error

    async def put(self, key: str, where: Where, answer: Answer, sent: Call | None) -> None:
        """Keeps an answer and counts what it took; when this returns, both survive a kill of the process.

        An earlier answer under this key is replaced. Of `sent` nothing is kept without `store_requests`.
        """
        await self._writer.ask(self._kept(key, where, answer, sent))

    async def spend(self, where: Where, model: str, tokens_in: int, tokens_out: int, cost: float) -> None:
        """Counts a call that was billed and gave no usable answer."""
        await self._writer.ask(self._billed(where, model, tokens_in, tokens_out, cost))

    async def lease(self, where: Where, cost: float, tokens: int) -> None:
        """Notes durably the most that the calls in flight may take; replaces the earlier note."""
        await self._writer.ask(Leased(where, (cost, tokens)))

    async def release(self, where: Where) -> None:
        """Removes that note: nothing is in flight."""
        await self._writer.ask(Leased(where, None))

    def settle_leases(self, pipeline: str, step: str | None = None) -> Spent:
        """Counts what a killed run of this pipeline or step left in flight as spent, by the model `lost`.

        For the start of a run, when nobody else runs the pipeline. The tokens count as `tokens_out`.
        """
        mine = and_(LEASES.c.pipeline == pipeline, true() if step is None else LEASES.c.step == step)
        with self._database.writing() as connection:
            left = connection.execute(select(LEASES.c.step, LEASES.c.cost, LEASES.c.tokens).where(mine)).all()
            lost = [
                self._billed(Where(pipeline, step), LOST, 0, tokens, cost, 0) for step, cost, tokens in left
            ]
            write_changes(connection, self._statements, lost)
            connection.execute(delete(LEASES).where(mine))
        return Spent(0, 0, sum(one.tokens_out for one in lost), sum(one.cost for one in lost))

    def spent(self, pipeline: str, step: str | None = None, since: float | None = None) -> Spent:
        """What a pipeline or one of its steps took, answers that were pruned and lost calls included.

        `since` (epoch s) is rounded down to a quarter of an hour.
        """
        query = _sums().where(SPEND.c.pipeline == pipeline)
        if step is not None:
            query = query.where(SPEND.c.step == step)
        if since is not None:
            query = query.where(SPEND.c.slot >= int(since // SLOT_S))
        with self._database.reading() as connection:
            calls, tokens_in, tokens_out, cost = tuple[Any, ...](connection.execute(query).one())
        return Spent(int(calls), int(tokens_in), int(tokens_out), float(cost))

    def sync(self) -> None:
        """Flushes to the disk: what was put before survives a power cut when this returns."""
        self._database.sync()

    def stats(self) -> list[ModelStats]:
        """What the ledger holds, by model."""
        return ledger_stats(self._database)

    def prune(self, older_than_s: float | None = None, max_bytes: int | None = None) -> Pruned:
        """Removes answers not used for that long, then those used longest ago until `max_bytes` hold.

        The last use is known to the day. What was spent stays counted.
        """
        before = None if older_than_s is None else self._clock() - older_than_s
        return prune_ledger(self._database, before, max_bytes)

    def export(self, path: Path) -> int:
        """Writes all answers as JSON lines, oldest first; returns how many. Raises StorageError."""
        return export_ledger(self._database, path)

    def _look_up(self, keys: list[str]) -> Sequence[bytes | None]:
        """The kept bytes of each key; what was found counts as used."""
        with self._database.reading() as connection:
            result = connection.execute(self._statements.look_up, {"keys": list(set(keys))})
            rows: list[tuple[str, bytes, str, float]] = [tuple(row) for row in result]
        found = {key: _Found(answer, model, used_at) for key, answer, model, used_at in rows}
        if found:
            self._writer.tell(self._used(keys, found))
        return [found[key].answer if key in found else None for key in keys]

    def _used(self, keys: list[str], found: Mapping[str, _Found]) -> Used:
        now = self._clock()
        hits = Counter(found[key].model for key in keys if key in found)
        return Used(hits, tuple(key for key, one in found.items() if now - one.used_at >= DAY_S), now)

    def _write(self, changes: list[Change]) -> Sequence[None]:
        with self._database.writing() as connection:
            write_changes(connection, self._statements, changes)
        return [None] * len(changes)

    def _kept(self, key: str, where: Where, answer: Answer, sent: Call | None) -> Kept:
        request = _request_of(sent) if sent is not None and self._store_requests else None
        try:
            data = answer.to_bytes()
        except TypeError as error:
            raise LedgerError(
                f"the answer {key} cannot be kept: {error}; the server sent broken text"
            ) from error
        now = self._clock()
        row = {
            "key": key,
            **where._asdict(),
            "model": _named(answer.model),
            "tokens_in": answer.tokens_in,
            "tokens_out": answer.tokens_out,
            "cost": answer.cost,
            "bytes": _ROW_BYTES + len(data) + len(request or b""),
            "created_at": now,
            "used_at": now,
            "answer": data,
            "request": request,
        }
        return Kept(row, self._billed(where, answer.model, answer.tokens_in, answer.tokens_out, answer.cost))

    def _billed(
        self, where: Where, model: str, tokens_in: int, tokens_out: int, cost: float, calls: int = 1
    ) -> Billed:
        """One call as spend. What no server can truly have billed is refused, as sums would break on it."""
        if not (0 <= tokens_in <= _MOST_TOKENS and 0 <= tokens_out <= _MOST_TOKENS and isfinite(cost)):
            raise LedgerError(
                f"a call of {where.step!r} to {model} was billed with {tokens_in} tokens in, {tokens_out} "
                f"out and a cost of {cost}; expected at most {_MOST_TOKENS:,}: look at what the server says"
            )
        return Billed(where, _named(model), int(self._clock() // SLOT_S), calls, tokens_in, tokens_out, cost)


def _named(model: str) -> str:
    """The name without the character that PostgreSQL cannot hold."""
    return model.replace("\x00", "\ufffd")


def _request_of(call: Call) -> bytes:
    body = {
        "messages": call.messages,
        "parameters": call.parameters,
        "kind": call.kind,
        "schema": call.schema,
        "n": call.n,
        "sample": call.sample,
    }
    return orjson.dumps(body)


def _sums() -> Select[Any]:
    columns = SPEND.c.calls, SPEND.c.tokens_in, SPEND.c.tokens_out, SPEND.c.cost
    return select(*(func.coalesce(func.sum(column), 0) for column in columns))
