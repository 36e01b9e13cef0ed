"""Inserts that change the row with the same key instead, for SQLite, PostgreSQL and MySQL or MariaDB."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects import mysql, postgresql, sqlite

Upsert = sqlite.Insert | postgresql.Insert | mysql.Insert


def replacing(table: Table, dialect: str) -> Upsert:
    """The row takes the place of one with the same primary key."""
    keys = primary_key(table)
    others = [column.name for column in table.columns if column.name not in keys]
    return upsert(table, dialect, keys, others)


def adding(table: Table, dialect: str, *names: str) -> Upsert:
    """The numbers are added to those of a row with the same primary key."""
    return upsert(table, dialect, primary_key(table), add=names)


def upsert(
    table: Table,
    dialect: str,
    keys: Sequence[str],
    replace: Sequence[str] = (),
    add: Sequence[str] = (),
    change: Mapping[str, ColumnElement[object]] | None = None,
) -> Upsert:
    """An insert that, where `keys` (a primary or unique key) are taken, replaces and adds these columns.

    `change` gives other columns a value of their own. MySQL looks at every unique key of the table.
    """
    if dialect in ("mysql", "mariadb"):
        insert = mysql.insert(table)
        new = {name: insert.inserted[name] for name in (*replace, *add)}
    else:
        insert = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
        new = {name: insert.excluded[name] for name in (*replace, *add)}
    values = {name: new[name] for name in replace}
    values |= {name: table.c[name] + new[name] for name in add}
    values |= change or {}
    if isinstance(insert, mysql.Insert):
        return insert.on_duplicate_key_update(values)
    return insert.on_conflict_do_update(index_elements=keys, set_=values)


def primary_key(table: Table) -> list[str]:
    """The names of the columns of its primary key."""
    return [column.name for column in table.primary_key.columns]
