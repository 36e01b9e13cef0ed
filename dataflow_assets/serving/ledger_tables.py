"""The tables of the ledger, and the statements on them, for SQLite and PostgreSQL."""

from dataclasses import dataclass
from typing import Any

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

from dataflow_assets.databases.upserts import Upsert, adding, replacing

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
        return cls(
            look_up=_look_up(),
            keep=replacing(ANSWERS, dialect),
            spend=adding(SPEND, dialect, "calls", "tokens_in", "tokens_out", "cost"),
            hit=adding(HITS, dialect, "hits"),
            lease=replacing(LEASES, dialect),
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
