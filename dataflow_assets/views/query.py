"""Runs one SELECT over the views of a pipeline, in a DuckDB that reaches nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators.tables.sql_database import Column, closed_duckdb, typed_rows
from dataflow_assets.optional_packages import require
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.views.step_views import View, views_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DEFAULT_MEMORY_MB = 1024


def query(
    pipeline: str | PathLike[str], sql: str, root: str | None = None, memory_mb: int = DEFAULT_MEMORY_MB
) -> pa.Table:
    """The result of one SELECT over the steps of a pipeline, as a pyarrow Table; for notebooks.

    `pipeline` is a name or a file. Columns have the five types of a batch. Raises ConfigError for a
    mistake in the query, RunError where it fails on the data.
    """
    found = find_pipeline(fspath(pipeline))
    work = PipelineWork(found.with_changes(root=root) if root else found)
    with open_views(work, memory_mb) as views:
        return pa.concat_tables(views.ask(sql).tables())


class Result(NamedTuple):
    """What a query gives, to be read within `open_views`."""

    views: "Views"
    sql: str
    columns: list[Column]

    @property
    def schema(self) -> Schema:
        """The columns as a file has them. Raises ConfigError for a type that none has, or a name twice."""
        names = [column.name for column in self.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(
                f"the result has two columns {', '.join(map(repr, twice))}; give each its name with AS"
            )
        for column in self.columns:
            if column.kind is None:
                raise ConfigError(
                    f"the column {column.name!r} of the result has the type {column.sql_type}, which no "
                    "column here can hold; cast it in the query"
                )
        return {column.name: column.kind or "string" for column in self.columns}

    def tables(self) -> Iterator[pa.Table]:
        """All rows, a few at a time, in the types of `schema`; the first table is empty.

        Raises ConfigError as `schema` does, before the first; RunError where the query fails on the data.
        """
        assert self.schema
        return self._tables()

    def _tables(self) -> Iterator[pa.Table]:
        with self.views.errors():
            yield from typed_rows(self.views.connection, self.sql, self.columns)

    def first_rows(self, most: int) -> list[tuple]:
        """The first rows as Python values."""
        with self.views.errors():
            return self.views.connection.execute(self.sql).fetchmany(most)


class Views:
    """The views of a pipeline in a DuckDB of their own."""

    def __init__(
        self, connection: "DuckDBPyConnection", views: Mapping[str, View], empty: Sequence[str]
    ) -> None:
        self.connection = connection
        self.by_name = views
        self._empty = empty
        for name, view in views.items():
            connection.register(name, view)

    def ask(self, sql: str) -> Result:
        """The result of a query, of which nothing ran yet. Raises ConfigError for a mistake in it."""
        import duckdb

        query = sql.strip().rstrip(";")
        try:
            statements = self.connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise ConfigError(
                    "the query is no single SELECT; expected one that reads, such as: FROM source"
                )
            self.connection.sql(f"FROM (\n{query}\n)")  # a PRAGMA is a SELECT to some versions
            asked = self.connection.sql(query)
        except duckdb.CatalogException as error:
            raise ConfigError(f"the query: {_one_line(error)} ({self._known()})") from error
        except duckdb.Error as error:
            raise ConfigError(f"the query: {_one_line(error)}") from error
        columns = [Column(name, str(kind)) for name, kind in zip(asked.columns, asked.types, strict=True)]
        return Result(self, query, columns)

    def _known(self) -> str:
        known = f"the views are: {', '.join(self.by_name)}"
        return f"{known}; without a committed batch: {', '.join(self._empty)}" if self._empty else known

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what DuckDB raises into the error of the view that it read, or a RunError."""
        import duckdb

        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            for view in self.by_name.values():
                if view.error is not None:
                    raise view.error from None
            raise RunError(f"the query failed: {_one_line(error)}") from error


@contextmanager
def open_views(work: PipelineWork, memory_mb: int = DEFAULT_MEMORY_MB) -> Iterator[Views]:
    """The views of a pipeline, to be asked; DuckDB holds at most `memory_mb`, above it temporary files.

    Raises ConfigError without the extra `sql`, MissingBatch where the source was never read.
    """
    require({"duckdb": "sql"}, "SQL over steps")
    views = views_of(work)
    with closed_duckdb(memory_mb) as connection:
        empty = [step.name for step in work.pipeline.ordered_steps if step.name not in views]
        yield Views(connection, views, empty)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
