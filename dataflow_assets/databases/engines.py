"""Engines of SQLAlchemy for SQLite, PostgreSQL and MySQL or MariaDB, and how a transaction begins on them."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from dataflow_assets.databases.places import file_url
from dataflow_assets.errors import ConfigError
from dataflow_assets.optional_packages import require

BUSY_S = 60
_MYSQL_SETTINGS = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_DATE'"


def sqlite_engine(path: Path, *pragmas: str) -> Engine:
    """The engine of a SQLite file; each new connection gets the pragmas. A lock is waited for 60 s."""
    engine = create_engine(file_url(path), connect_args={"timeout": BUSY_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, record: object) -> None:
        connection.isolation_level = None  # the driver would begin transactions by itself, and late
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    return engine


def postgres_engine(url: URL, asker: str) -> Engine:
    """The engine of a PostgreSQL database, through psycopg. Raises ConfigError where that is missing."""
    require({"psycopg": "postgres"}, asker)
    try:
        return create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ImportError as error:  # psycopg without its C library
        raise ConfigError(f"{asker} cannot load psycopg: {error}; pip install 'psycopg[binary]'") from error


def mysql_engine(url: URL, asker: str) -> Engine:
    """The engine of a MySQL or MariaDB database, through PyMySQL: four-byte characters, strict, UTC.

    Raises ConfigError where PyMySQL is missing.
    """
    require({"pymysql": "mysql"}, asker)
    url = url.set(drivername="mysql+pymysql").update_query_dict({"charset": "utf8mb4"})
    engine = create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_MYSQL_SETTINGS)
            cursor.execute("SET SESSION time_zone = '+00:00'")

    return engine


@contextlib.contextmanager
def closed_on_failure(engine: Engine) -> Iterator[None]:
    """Ends the engine's connections where what is done within fails."""
    with contextlib.ExitStack() as stack:
        stack.callback(engine.dispose)
        yield
        stack.pop_all()


def begin(connection: Connection) -> None:
    """Takes SQLite's lock for writing at once: one that reads first may be refused it later."""
    driver = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.execute("BEGIN IMMEDIATE")


def flush(path: Path) -> None:
    """Makes a file or folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
