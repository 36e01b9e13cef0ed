"""Opens the ledger's database: made whole or not at all, recognised, and flushed on demand."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from sqlalchemy import URL, Connection, insert, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from dataflow_assets.databases.engines import (
    BUSY_S,
    begin,
    closed_on_failure,
    flush,
    postgres_engine,
    sqlite_engine,
)
from dataflow_assets.databases.places import database_url, file_of, shown_place
from dataflow_assets.errors import LedgerError
from dataflow_assets.serving.ledger_tables import ABOUT, METADATA, VERSION

_SYNCHRONOUS = "synchronous = NORMAL"
_CREATION_LOCK = 0x6C65646765
_MOVE_AWAY = (
    "put back a copy of the ledger, or move the file away: the next run begins a new one, "
    "and asks and pays again for the answers that are lost"
)


def ledger_url(place: str) -> URL:
    """The URL of a ledger: `postgresql://…`, `sqlite:///…`, or the path of a file. Raises ConfigError."""
    return database_url(place, "the ledger", ("sqlite", "postgresql"))


class LedgerDatabase:
    """The database of a ledger, opened; `place` names it in messages, without a password."""

    def __init__(self, url: URL, create: bool) -> None:
        self.file, self.place = file_of(url), shown_place(url)
        if self.file:
            _ensure_file(self.file, create)
            self.engine = sqlite_engine(self.file, _SYNCHRONOUS)
        else:
            self.engine = postgres_engine(url, "a ledger in PostgreSQL")
        self._folder_synced = False
        with closed_on_failure(self.engine):
            self._ensure_tables(create)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for queries. Raises LedgerError."""
        with database_errors(self.place, "read"), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all of it or nothing, and it survives a kill once it is left. Raises LedgerError."""
        with database_errors(self.place, "written"), self.engine.connect() as connection:
            begin(connection)
            yield connection
            connection.commit()

    def sync(self) -> None:
        """Flushes what was written to the disk. PostgreSQL has done that already."""
        if self.file is None:
            return
        try:
            with contextlib.suppress(FileNotFoundError):
                flush(Path(f"{self.file}-wal"))
            if not self._folder_synced:
                flush(self.file.parent)
                self._folder_synced = True
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.place} cannot be flushed: {error.strerror}; look after the disk, then run "
                "the same command again"
            ) from error

    def shrink(self) -> None:
        """Gives the room of removed rows back to the file system. PostgreSQL does so by itself, in time."""
        if self.file is None:
            return
        with database_errors(self.place, "made smaller"), self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            # `execute` would take the first step alone, which frees one page.
            driver.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")

    def close(self) -> None:
        """Ends the connections."""
        self.engine.dispose()

    def _ensure_tables(self, create: bool) -> None:
        with self.reading() as connection:
            version = _version_of(connection)
        if version is None and create and self.file is None:
            with self.writing() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _CREATION_LOCK})
                _make_tables(connection)
            version = VERSION
        if version is None:
            raise LedgerError(f"{self.place} is a database, but not a ledger; {self._way_out()}")
        if version != VERSION:
            raise LedgerError(
                f"the ledger {self.place} is of version {version}, expected {VERSION}: another version of "
                f"dataflow_assets made it; use that one, or {self._way_out()}"
            )

    def _way_out(self) -> str:
        return _MOVE_AWAY if self.file else "name another database"


@contextlib.contextmanager
def database_errors(place: str, done: str) -> Iterator[None]:
    """Turns what the database raises into a LedgerError that names the place and what to do."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        reason = str(cause).strip().partition("\n")[0]
        raise LedgerError(f"the ledger {place} cannot be {done}: {reason}; {_advice(cause)}") from error


def _advice(cause: BaseException) -> str:
    if isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause):
        return f"another process has held it for {BUSY_S} s: end that one, then run the same command again"
    if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
        return _MOVE_AWAY
    return "make room, give permission or bring the server back, then run the same command again"


def _version_of(connection: Connection) -> int | None:
    if not inspect(connection).has_table(ABOUT.name):
        return None
    return connection.execute(select(ABOUT.c.version)).scalar()


def _make_tables(connection: Connection) -> None:
    METADATA.create_all(connection)
    if _version_of(connection) is None:
        connection.execute(insert(ABOUT), {"version": VERSION})


def _ensure_file(path: Path, create: bool) -> None:
    """A SQLite file is there and is none that was emptied. Its content is SQLite's matter.

    Nothing here opens the file: closing it again would free the locks that this process has on it.
    """
    log = Path(f"{path}-wal")
    log_was_there = log.exists()
    try:
        status = path.stat()
    except FileNotFoundError:
        _refuse_or_create(path, log if log_was_there else None, create)
        return
    except OSError as error:
        raise _unusable(path, error) from error
    if not S_ISREG(status.st_mode):
        raise LedgerError(f"the ledger {path} is not a file; name another place for it")
    if not status.st_size:
        raise LedgerError(f"the ledger {path} is empty: something has cut it off; {_MOVE_AWAY}")


def _refuse_or_create(path: Path, log: Path | None, create: bool) -> None:
    if log is not None:
        raise LedgerError(
            f"the ledger {path} is gone, but its log {log.name} is there; put the file back, or remove the "
            "log too: the next run then begins a new ledger"
        )
    if not create:
        raise LedgerError(f"there is no ledger at {path}; a run with an LLM step makes one")
    try:
        _create_file(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"the ledger {path} cannot be opened: {error.strerror}; "
        "make room, give permission or name another place"
    )


def _create_file(path: Path) -> None:
    """Makes the file elsewhere and links it: another process sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".ledger-", dir=path.parent) as folder:
        made = Path(folder) / "ledger"
        with database_errors(str(path), "made"):
            _fill_file(made)
        flush(made)
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
    flush(path.parent)


def _fill_file(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
    engine = sqlite_engine(path, _SYNCHRONOUS)
    try:
        with engine.begin() as connection:
            _make_tables(connection)
    finally:
        engine.dispose()
