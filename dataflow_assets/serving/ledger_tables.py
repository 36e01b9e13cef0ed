"""The tables of the ledger, and the statements on them, for SQLite and PostgreSQL."""

from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    Column,
    Delete,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    delete,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

VERSION = 1
# Every time zone's midnight falls on a quarter of an hour, so any calendar month can be summed.
SLOT_S = 900
DAY_S = 86_400

METADATA = MetaData()
ABOUT = Table("ledger_about", METADATA, Column("version", Integer, primary_key=True))
# The large columns come last: SQLite reads the others without them.
ANSWERS = Table(
    "ledger_answers",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("tokens_in", BigInteger, nullable=False),
    Column("tokens_out", BigInteger, nullable=False),
    Column("cost", Double, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("request", LargeBinary),
)
SPEND = Table(
    "ledger_spend",
    METADATA,
    Column("pipeline", Text, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("slot", BigInteger, primary_key=True, autoincrement=False),
    Column("calls", BigInteger, nullable=False),
    Column("tokens_in", BigInteger, nullable=False),
    Column("tokens_out", BigInteger, nullable=False),
    Column("cost", Double, nullable=False),
)
LEASES = Table(
    "ledger_leases",
    METADATA,
    Column("pipeline", Text, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("cost", Double, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)
HITS = Table(
    "ledger_hits",
    METADATA,
    Column("model", Text, primary_key=True),
    Column("hits", BigInteger, nullable=False),
)

Upsert = sqlite.Insert | postgresql.Insert


@dataclass(frozen=True)
class Statements:
    """The statements of every day, built once: SQLAlchemy then finds their text again by identity."""

    look_up: Select[Any]
    keep: Upsert
    spend: Upsert
    hit: Upsert
    lease: Upsert
    release: Delete
    use: Update

    @classmethod
    def of(cls, dialect: str) -> "Statements":
        """Those of `sqlite` or `postgresql`."""
        insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
        return cls(
            look_up=_look_up(),
            keep=_replacing(insert(ANSWERS)),
            spend=_adding(insert(SPEND), "calls", "tokens_in", "tokens_out", "cost"),
            hit=_adding(insert(HITS), "hits"),
            lease=_replacing(insert(LEASES)),
            release=delete(LEASES).where(
                LEASES.c.pipeline == bindparam("pipeline"), LEASES.c.step == bindparam("step")
            ),
            use=_use(),
        )


def _look_up() -> Select[Any]:
    columns = [ANSWERS.c[name] for name in ("key", "answer", "model", "used_at")]
    return select(*columns).where(ANSWERS.c.key.in_(bindparam("keys", expanding=True)))


def _use() -> Update:
    """Skips rows that another process is writing, so that no two ever wait for each other."""
    named = ANSWERS.c.key.in_(bindparam("keys", expanding=True))
    free = select(ANSWERS.c.key).where(named).with_for_update(skip_locked=True)
    return update(ANSWERS).where(ANSWERS.c.key.in_(free)).values(used_at=bindparam("now"))


def _replacing(insert: Upsert) -> Upsert:
    """The row takes the place of one with the same key."""
    keys = _keys(insert)
    others = {column.name: column for column in insert.excluded if column.name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=others)


def _adding(insert: Upsert, *names: str) -> Upsert:
    """The numbers are added to those of a row with the same key."""
    sums = {name: insert.table.c[name] + insert.excluded[name] for name in names}
    return insert.on_conflict_do_update(index_elements=_keys(insert), set_=sums)


def _keys(insert: Upsert) -> list[str]:
    return [column.name for column in cast(Table, insert.table).primary_key.columns]
