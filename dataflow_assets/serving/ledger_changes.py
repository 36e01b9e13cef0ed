"""What is written to the ledger: many changes in one transaction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection

from dataflow_assets.serving.asking import Where
from dataflow_assets.serving.ledger_tables import Statements


class Billed(NamedTuple):
    """Calls of one step and model within one slot of time, and what they took."""

    where: Where
    model: str
    slot: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float

    def plus(self, other: "Billed") -> "Billed":
        """Both together; the other is of the same step, model and slot."""
        tokens_in, tokens_out = self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out
        return Billed(*self[:3], self.calls + other.calls, tokens_in, tokens_out, self.cost + other.cost)


class Kept(NamedTuple):
    """An answer as a row of its table, and what it took."""

    row: Mapping[str, object]
    billed: Billed


class Leased(NamedTuple):
    """The most that calls in flight may take; None when none is."""

    where: Where
    most: tuple[float, int] | None


class Used(NamedTuple):
    """Answers that were found, counted by model; `keys` are those not used for a day."""

    hits: Mapping[str, int]
    keys: tuple[str, ...]
    now: float


Change = Kept | Billed | Leased | Used


@dataclass
class _Sums:
    """The same changes as rows, one for each key, so that each row is written once."""

    answers: dict[str, Mapping[str, object]] = field(default_factory=dict)
    spend: dict[tuple[Where, str, int], Billed] = field(default_factory=dict)
    leases: dict[Where, tuple[float, int] | None] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        """Counts one change; a later answer or lease replaces an earlier one."""
        if isinstance(change, Kept):
            self.answers[str(change.row["key"])] = change.row
            self._bill(change.billed)
        elif isinstance(change, Billed):
            self._bill(change)
        elif isinstance(change, Leased):
            self.leases[change.where] = change.most
        else:
            for model, hits in change.hits.items():
                self.hits[model] = self.hits.get(model, 0) + hits
            self.used.update(dict.fromkeys(change.keys, change.now))

    def _bill(self, billed: Billed) -> None:
        known = self.spend.get(billed[:3])
        self.spend[billed[:3]] = billed if known is None else known.plus(billed)


def write_changes(connection: Connection, statements: Statements, changes: Iterable[Change]) -> None:
    """Writes them all. Rows in the order of their keys, so that two processes never wait for each other."""
    sums = _Sums()
    for change in changes:
        sums.add(change)
    if sums.answers:
        connection.execute(statements.keep, [sums.answers[key] for key in sorted(sums.answers)])
    if sums.spend:
        connection.execute(statements.spend, [_spend_row(sums.spend[key]) for key in sorted(sums.spend)])
    _write_leases(connection, statements, sums.leases)
    if sums.hits:
        rows = [{"model": model, "hits": hits} for model, hits in sorted(sums.hits.items())]
        connection.execute(statements.hit, rows)
    if sums.used:
        now = max(sums.used.values())
        connection.execute(statements.use, {"keys": sorted(sums.used), "now": now})


def _spend_row(billed: Billed) -> dict[str, object]:
    return {**billed.where._asdict(), **{name: getattr(billed, name) for name in Billed._fields[1:]}}


def _write_leases(
    connection: Connection, statements: Statements, leases: Mapping[Where, tuple[float, int] | None]
) -> None:
    for where, most in sorted(leases.items()):
        if most is None:
            connection.execute(statements.release, where._asdict())
        else:
            connection.execute(statements.lease, {**where._asdict(), "cost": most[0], "tokens": most[1]})
