"""One query on any database that SQLAlchemy knows, read in the order of its key and never written to."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Row,
    column,
    create_engine,
    distinct,
    event,
    func,
    literal_column,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.sql.elements import quoted_name

from dataflow_assets.databases.engines import mysql_engine, postgres_engine
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.sources.sql.spec import SqlSource

_ASKER = "source.sql"


class Bounds(NamedTuple):
    """The rows of a query: how many, how many have a key, how many keys differ, the lowest and highest."""

    rows: int
    keyed: int
    distinct: int
    first: Any
    last: Any


class Span(NamedTuple):
    """A range of keys: above `after` (None: from the first), up to `last` with it."""

    after: Any
    last: Any


class Query:
    """The query of a source. `place` names the database, without user and password."""

    def __init__(self, spec: SqlSource, base_dir: Path) -> None:
        url = _url(spec, base_dir)
        self.place = _place(url)
        self._engine = _engine(url, base_dir)
        self._key = spec.key
        self._updated = spec.updated
        names = [spec.key, *([spec.updated] if spec.updated else [])]
        columns = [column(quoted_name(name, quote=True)) for name in dict.fromkeys(names)]
        # A colon would begin a parameter; the last line may be a comment.
        statement = text(re.sub(r"(?<!\\):", r"\\:", spec.query) + "\n")
        self._rows = statement.columns(*columns).subquery("source_rows")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection on which nothing can be changed. Raises SourceError."""
        try:
            with self._engine.connect() as connection:
                if connection.dialect.name == "postgresql":
                    connection.execute(text("SET TRANSACTION READ ONLY"))
                yield connection
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            raise SourceError(
                f"the query on {self.place} cannot be read: {reason}; correct `source.query`, its `key` and "
                "`updated`, or bring the server back"
            ) from error

    def names(self, connection: Connection) -> list[str]:
        """The columns of the query, in order."""
        return list(connection.execute(select(literal_column("*")).select_from(self._rows).limit(1)).keys())

    def bounds(self, connection: Connection) -> Bounds:
        """The rows and keys as they are now."""
        key = self._rows.c[self._key]
        numbers = func.count(), func.count(key), func.count(distinct(key)), func.min(key), func.max(key)
        return Bounds(*connection.execute(select(*numbers).select_from(self._rows)).one())

    def key_of(self, connection: Connection, span: Span, rows: int) -> Any:
        """The key of the row at this place in the range, counted from 1; None where it has fewer."""
        key = self._rows.c[self._key]
        query = select(key).where(*self._within(span)).order_by(key).limit(1).offset(rows - 1)
        return connection.execute(query).scalar()

    def a_key_that_stands_twice(self, connection: Connection) -> Any:
        """One of them."""
        key = self._rows.c[self._key]
        twice = select(key).where(key.is_not(None)).group_by(key).having(func.count() > 1)
        return connection.execute(twice.order_by(key).limit(1)).scalar()

    def newest(self, connection: Connection, span: Span) -> tuple[int, Any]:
        """How many rows the range has, and its highest value of `updated`."""
        assert self._updated is not None
        numbers = func.count(), func.max(self._rows.c[self._updated])
        rows, newest = connection.execute(select(*numbers).where(*self._within(span))).one()
        return rows, newest

    def page(self, connection: Connection, span: Span, rows: int) -> tuple[list[str], Sequence[Row[Any]]]:
        """The names of the columns, and the first rows of the range."""
        query = select(literal_column("*")).select_from(self._rows).where(*self._within(span))
        result = connection.execute(query.order_by(self._rows.c[self._key]).limit(rows))
        return list(result.keys()), result.all()

    def _within(self, span: Span) -> list[Any]:
        key = self._rows.c[self._key]
        return [key <= span.last, *([key > span.after] if span.after is not None else [])]


def _url(spec: SqlSource, base_dir: Path) -> URL:
    try:
        return make_url(spec.sql.get_secret_value())
    except ArgumentError:
        raise ConfigError(
            "source.sql is no URL of a database; expected e.g. postgresql://USER@HOST/DATABASE"
        ) from None


def _place(url: URL) -> str:
    if url.drivername.startswith("sqlite"):
        return Path(url.database or "").name
    return f"{url.host or 'localhost'}/{url.database or ''}"


def _engine(url: URL, base_dir: Path) -> Engine:
    """The engine for this URL. Raises ConfigError, SourceError."""
    kind = url.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return postgres_engine(url, _ASKER)
    if kind in ("mysql", "mariadb"):
        return _reading_mysql(mysql_engine(url, _ASKER))
    if kind == "sqlite":
        return _reading_sqlite(url, base_dir)
    try:
        return create_engine(url, pool_pre_ping=True)
    except (NoSuchModuleError, ImportError) as error:
        raise ConfigError(
            f"source.sql begins with {url.drivername}://, for which there is no driver here: {error}; "
            "install the SQLAlchemy dialect and the driver of this database"
        ) from None


def _reading_mysql(engine: Engine) -> Engine:
    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")

    return engine


def _reading_sqlite(url: URL, base_dir: Path) -> Engine:
    """A file is not made where there is none."""
    path = Path(base_dir, url.database or "")
    if not path.is_file():
        raise SourceError(
            f"source.sql: there is no SQLite file {url.database or '(in memory)'}; expected one"
        )
    engine = create_engine(URL.create("sqlite", database=str(path.absolute())))

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        connection.execute("PRAGMA query_only = ON")

    return engine
