"""The tables of a store of corpora, on SQLite, PostgreSQL, and MySQL or MariaDB."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql

VERSION = 1
NAME_CHARS = 190
STAGE_CHARS = 64
TEXT_COLUMNS = ("data_system", "data_prompt", "data_reasoning", "data_response")
# What an enhancement may change: the rest says which row it is, and how its conversation is put together.
DATA_COLUMNS = (*TEXT_COLUMNS, "data_weight", "data_tools")

METADATA = MetaData()
_BINARY: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
# SQLite numbers rows by itself in a column that is exactly INTEGER.
_ID = BigInteger().with_variant(Integer(), "sqlite")
_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")

ABOUT = Table("corpus_about", METADATA, Column("version", Integer, primary_key=True), **_BINARY)

# `shape` and `columns` are JSON: how a record becomes turns, and the columns of a record with their types.
DATASETS = Table(
    "corpus_datasets",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", String(NAME_CHARS), nullable=False, unique=True),
    Column("shape", _TEXT, nullable=False),
    Column("columns", _TEXT, nullable=False),
    Column("next_row", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    sqlite_autoincrement=True,
    **_BINARY,
)

# A row a turn. `row_key` is the id that the conversation came with, `row_hash` its hash (32 digits),
# `row_identifier` its number within the data set, in the order of arrival. `extras` is JSON: whatever of
# the record, and of the form of this turn, no other column holds. `revision` counts the changes.
TURNS = Table(
    "corpus_turns",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("dataset_file_id", BigInteger, nullable=False),
    Column("row_identifier", BigInteger, nullable=False),
    Column("turn_taking", Integer, nullable=False),
    Column("row_hash", String(32), nullable=False),
    Column("is_deleted", Boolean, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("data_weight", Double),
    Column("row_key", _TEXT, nullable=False),
    *(Column(name, _TEXT) for name in TEXT_COLUMNS),
    Column("data_tools", _TEXT),
    Column("extras", _TEXT),
    UniqueConstraint("dataset_file_id", "row_hash", "turn_taking", name="corpus_turns_of_row"),
    Index("corpus_turns_in_order", "dataset_file_id", "row_identifier", "id"),
    sqlite_autoincrement=True,
    **_BINARY,
)

# How far a task has come: `first_key` and `last_key` are the ids that it works on, fixed when it began,
# `offset_key` is the last one done, `rows_before` the rows in that range when it began.
CURSORS = Table(
    "corpus_cursors",
    METADATA,
    Column("task", String(NAME_CHARS), primary_key=True),
    Column("stage", String(STAGE_CHARS), primary_key=True),
    Column("type", String(STAGE_CHARS), primary_key=True),
    Column("dataset_file_id", BigInteger, primary_key=True, autoincrement=False),
    Column("fingerprint", String(32), nullable=False),
    Column("first_key", BigInteger, nullable=False),
    Column("last_key", BigInteger, nullable=False),
    Column("offset_key", BigInteger, nullable=False),
    Column("rows_before", BigInteger, nullable=False),
    Column("processed", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("rejected", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("worker", String(NAME_CHARS), nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("is_done", Boolean, nullable=False),
    **_BINARY,
)

# The turns that a task left as they were, and why.
LEFT = Table(
    "corpus_left",
    METADATA,
    Column("task", String(NAME_CHARS), primary_key=True),
    Column("stage", String(STAGE_CHARS), primary_key=True),
    Column("type", String(STAGE_CHARS), primary_key=True),
    Column("turn_id", BigInteger, primary_key=True, autoincrement=False),
    Column("dataset_file_id", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("reason", _TEXT, nullable=False),
    **_BINARY,
)
