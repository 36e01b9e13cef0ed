"""Opens the database of a store of corpora: tables made or recognised, transactions whole, errors named."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, func, insert, inspect, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from dataflow_assets.corpora.tables import ABOUT, METADATA, VERSION
from dataflow_assets.databases.engines import (
    begin,
    closed_on_failure,
    mysql_engine,
    postgres_engine,
    sqlite_engine,
)
from dataflow_assets.databases.places import database_url, file_of, shown_place
from dataflow_assets.errors import CorpusError
from dataflow_assets.io.atomic import make_folder

_T = TypeVar("_T")
_CREATION_LOCK = 0x636F72707573
_CREATION_NAME = "dataflow_corpus_tables"
_CREATION_WAIT_S = 60
_TRIES = 6
# Deadlock and serialization failure: the server has undone the transaction, and says to try again.
_PASSING_MYSQL = (1205, 1213)
_PASSING_POSTGRES = ("40001", "40P01")


def corpus_url(place: str) -> URL:
    """The URL of a store: a path, `sqlite:///…`, `postgresql://…`, `mysql://…` or `mariadb://…`.

    Raises ConfigError.
    """
    return database_url(place, "the corpora", ("sqlite", "postgresql", "mysql"))


class CorpusDatabase:
    """The database of a store, opened; `place` names it in messages, without a password.

    With `create` its tables, and a SQLite file, are made where they are missing. Raises CorpusError.
    """

    def __init__(self, place: str, create: bool) -> None:
        url = corpus_url(place)
        self.file, self.place = file_of(url), shown_place(url)
        if self.file:
            self._check_file(self.file, create)
        self.engine = _engine(url)
        self.dialect = self.engine.dialect.name
        with closed_on_failure(self.engine):
            self._ensure_tables(create)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for queries. Raises CorpusError."""
        with self.errors("read"), self.engine.connect() as connection:
            yield connection

    def write(self, work: Callable[[Connection], _T], on: Connection | None = None) -> _T:
        """Does the work in one transaction, all of it or nothing; again where the server took it back.

        On a connection of its own, or on one that is held. Raises CorpusError.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._written(work, on)
            except OperationalError as error:
                if not _is_passing(error):
                    raise self._error("written", error) from error
            time.sleep(0.05)
        with self.errors("written"):
            return self._written(work, on)

    def _written(self, work: Callable[[Connection], _T], on: Connection | None) -> _T:
        with contextlib.ExitStack() as stack:
            connection = on or stack.enter_context(self.engine.connect())
            with self.errors("written", but=OperationalError):
                try:
                    begin(connection)
                    done = work(connection)
                    connection.commit()
                except BaseException:  # raised again: a connection that is held would stay in it
                    connection.rollback()
                    raise
            return done

    @contextlib.contextmanager
    def errors(self, done: str, but: type[Exception] | None = None) -> Iterator[None]:
        """Turns what the database raises into a CorpusError that names the place and what to do."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            if but is not None and isinstance(error, but):
                raise
            raise self._error(done, error) from error

    def _error(self, done: str, error: Exception) -> CorpusError:
        cause = getattr(error, "orig", None) or error
        reason = str(cause).strip().partition("\n")[0]
        return CorpusError(f"the corpora in {self.place} cannot be {done}: {reason}; {_advice(cause)}")

    def close(self) -> None:
        """Ends the connections."""
        self.engine.dispose()

    def _check_file(self, path: Path, create: bool) -> None:
        if path.is_dir():
            raise CorpusError(f"the corpora's place {path} is a folder; expected a file")
        if not path.exists() and not create:
            raise CorpusError(f"there are no corpora at {path}; `dataflow-assets corpus import` makes them")
        make_folder(path.absolute().parent)

    def _ensure_tables(self, create: bool) -> None:
        with self.reading() as connection:
            version = _version_of(connection)
        if version is None and create:
            version = self.write(self._make_tables)
        if version is None:
            raise CorpusError(
                f"{self.place} is a database without corpora; `dataflow-assets corpus import` makes them"
            )
        if version != VERSION:
            raise CorpusError(
                f"the corpora in {self.place} are of version {version}, expected {VERSION}: another version "
                "of dataflow_assets made them; use that one, or name another place"
            )

    def _make_tables(self, connection: Connection) -> int | None:
        """Makes them under a lock, for MySQL commits each table by itself."""
        if self.dialect == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_CREATION_LOCK)))
        if self.dialect == "mysql":
            connection.execute(select(func.get_lock(_CREATION_NAME, _CREATION_WAIT_S)))
        try:
            METADATA.create_all(connection)
            if _version_of(connection) is None:
                connection.execute(insert(ABOUT), {"version": VERSION})
            version = _version_of(connection)
            connection.commit()
            return version
        finally:
            if self.dialect == "mysql":
                connection.execute(select(func.release_lock(_CREATION_NAME)))


def _engine(url: URL) -> Engine:
    if url.drivername == "sqlite":
        pragmas = ("journal_mode = WAL", "synchronous = FULL", "case_sensitive_like = ON")
        return sqlite_engine(Path(str(url.database)), *pragmas)
    if url.drivername == "postgresql":
        return postgres_engine(url, "a store of corpora in PostgreSQL")
    return mysql_engine(url, "a store of corpora in MySQL or MariaDB")


def _version_of(connection: Connection) -> int | None:
    if not inspect(connection).has_table(ABOUT.name):
        return None
    return connection.execute(select(ABOUT.c.version)).scalar()


def _is_passing(error: OperationalError) -> bool:
    if getattr(error.orig, "sqlstate", None) in _PASSING_POSTGRES:
        return True
    return bool(error.orig and error.orig.args and error.orig.args[0] in _PASSING_MYSQL)


def _advice(cause: BaseException) -> str:
    if isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause):
        return "another process has held them for long: end that one, then run the same command again"
    if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
        return "put back a copy of the file, or name another place"
    return "make room, give permission or bring the server back, then run the same command again"
