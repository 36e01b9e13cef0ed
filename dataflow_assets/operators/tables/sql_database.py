"""Rows in a DuckDB that reaches nothing outside, and what a query on them gives."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    arrow_field,
    arrow_schema,
    column_of,
    column_type,
    json_value,
    schema_of,
)
from dataflow_assets.errors import RunError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SQL_TYPES: dict[ColumnType, str] = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "json": "JSON",
}
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_INTEGERS = (*_SIGNED, *(f"U{kind}" for kind in _SIGNED))
_TEXTS = ("VARCHAR", "UUID", "DATE", "TIME", "INTERVAL", "ENUM(", '"NULL"')
_NESTED = ("STRUCT(", "MAP(", "UNION(")
_DUCKDB_JSON = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
_READ_ROWS = 2048
_SETTINGS = {
    "threads": "1",  # so that the order of rows and the sums are the same each time
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "arrow_large_buffer_size": "true",
}
_STRANGE_ID = """
    SELECT made.row_id, count(*), count(places.row_id)
    FROM made LEFT JOIN places ON made.row_id = places.row_id
    GROUP BY made.row_id
    HAVING count(*) > 1 OR count(places.row_id) = 0
    ORDER BY made.row_id LIMIT 1
"""
_DROPPED = """
    CREATE TABLE dropped AS
    SELECT row_id, place FROM places WHERE row_id NOT IN (SELECT row_id FROM made) ORDER BY place
"""
_IN_QUERY_ORDER = "CREATE TABLE result AS SELECT * FROM made"
_IN_INPUT_ORDER = """
    CREATE TABLE result AS
    SELECT made.* FROM made JOIN places ON made.row_id = places.row_id ORDER BY places.place
"""
_SORTED = "CREATE TABLE result AS SELECT * FROM made ORDER BY ALL"


class Column(NamedTuple):
    """A column of a query's result: its name, and the type that DuckDB gives it."""

    name: str
    sql_type: str

    @property
    def kind(self) -> ColumnType | None:
        """The type that it has here; None where there is none for it."""
        found = self.sql_type
        if found in _INTEGERS:
            return "int64"
        if found == "JSON" or found.endswith("]") or found.startswith(_NESTED):
            return "json"
        if found in ("DOUBLE", "FLOAT") or found.startswith("DECIMAL"):
            return "float64"
        if found == "BOOLEAN":
            return "bool"
        return "string" if found.startswith(_TEXTS) else None

    def reading(self) -> str:
        """How it is selected, as the type that it has here."""
        column, kind = _quoted(self.name), self.kind
        assert kind is not None
        if kind == "json" and self.sql_type != "JSON":
            column = f"to_json({column})"
        to = "VARCHAR" if kind == "json" else _SQL_TYPES[kind]
        return f"CAST({column} AS {to}) AS {_quoted(self.name)}"


class Described(NamedTuple):
    """The columns of a query's result, and whether the query says the order of its rows."""

    columns: list[Column]
    has_order: bool

    @property
    def keeps_ids(self) -> bool:
        """Whether its rows are those of the input."""
        return any(column.name == ROW_ID for column in self.columns)


class Database:
    """The rows of a step as the table `input`, their places as `places`."""

    def __init__(self, connection: "DuckDBPyConnection") -> None:
        self._connection = connection

    def make_tables(self, schema: Schema) -> None:
        """Makes both tables, empty."""
        columns = ", ".join(f"{_quoted(name)} {_SQL_TYPES[kind]}" for name, kind in schema.items())
        self._connection.execute(f"CREATE TABLE input ({columns})")
        self._connection.execute("CREATE TABLE places (row_id VARCHAR, place BIGINT)")

    def fill(self, batches: Iterable[tuple[str, pa.Table]]) -> tuple[dict[str, int], Schema]:
        """Puts in all rows; the number of rows of each batch, and the columns."""
        counts: dict[str, int] = {}
        schema: Schema = {}
        place = 0
        for key, table in batches:
            if not counts:
                schema = schema_of(table)
                self.make_tables(known_to_sql(schema))
            rows = table.select(list(known_to_sql(schema)))
            places = pa.array(range(place, place + table.num_rows), pa.int64())
            self._insert("input", as_duckdb_json(rows))
            self._insert("places", pa.table({ROW_ID: table[ROW_ID], "place": places}))
            counts[key] = table.num_rows
            place += table.num_rows
        return counts, schema

    def _insert(self, name: str, rows: pa.Table) -> None:
        self._connection.register("incoming", rows)
        self._connection.execute(f"INSERT INTO {name} SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def describe(self, query: str) -> Described | None:
        """What the query gives; None where it is no single SELECT. Raises duckdb.Error."""
        import duckdb

        statements = self._connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return None
        found = self._connection.execute(f"DESCRIBE (\n{query}\n)").fetchall()
        return Described([Column(name, kind) for name, kind, *_ in found], self._has_order(query))

    def _has_order(self, query: str) -> bool:
        """Whether the query itself says the order of its rows, or says it in a form that is not known."""
        tree = json.loads(self._one("SELECT json_serialize_sql(?)", query)[0])
        if tree.get("error", True):
            return True
        modifiers = tree["statements"][0]["node"].get("modifiers", [])
        return any(modifier["type"] == "ORDER_MODIFIER" for modifier in modifiers)

    def make(self, query: str) -> None:
        """Runs the query; `strange_id` and `put_in_order` come next."""
        self._connection.execute(f"CREATE TABLE made AS (\n{query}\n)")

    def strange_id(self) -> tuple[str, int, int] | None:
        """An id that the result has twice, or that did not come in, and how often it is in both."""
        return next(iter(self._connection.execute(_STRANGE_ID).fetchall()), None)

    def put_in_order(self, described: Described) -> None:
        """Puts the result in its order, and notes the input rows that it lacks."""
        if described.keeps_ids:
            self._connection.execute(_DROPPED)
        if described.has_order:
            self._connection.execute(_IN_QUERY_ORDER)
        else:
            self._connection.execute(_IN_INPUT_ORDER if described.keeps_ids else _SORTED)
        self._connection.execute("DROP TABLE made")

    def result(self, columns: list[Column]) -> tuple[int, Iterator[pa.Table]]:
        """The number of rows of the result, and the rows in their order, a few at a time."""
        rows = self._one("SELECT count(*) FROM result")[0]
        return rows, typed_rows(self._connection, "FROM result", columns)

    def dropped(self, begin: int, end: int) -> pa.Array:
        """The ids of the input rows from one place to another that the result lacks."""
        found = self._connection.cursor().execute(
            "SELECT row_id FROM dropped WHERE place >= ? AND place < ?", [begin, end]
        )
        return pa.array([row[0] for row in found.fetchall()], pa.large_string())

    def _one(self, query: str, *values: object) -> tuple:
        return self._connection.execute(query, list(values)).fetchall()[0]


@contextmanager
def open_database(memory_mb: int) -> Iterator[Database]:
    """An empty database for the rows of a step, closed to the outside."""
    with closed_duckdb(memory_mb) as connection:
        yield Database(connection)


@contextmanager
def closed_duckdb(memory_mb: int) -> "Iterator[DuckDBPyConnection]":
    """An empty DuckDB in a temporary folder; what runs in it reaches no file and no setting."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="dataflow-") as folder:
        path = str(Path(folder, "rows.duckdb"))
        with duckdb.connect(path, config={**_SETTINGS, "memory_limit": f"{memory_mb}MiB"}) as connection:
            connection.execute("SET lock_configuration = true")
            yield connection


def typed_rows(connection: "DuckDBPyConnection", query: str, columns: list[Column]) -> Iterator[pa.Table]:
    """The rows of a query in the types that they have here, a few at a time; the first table is empty.

    Raises RunError for NaN and infinity within JSON, duckdb.Error where the query fails.
    """
    selected = ", ".join(column.reading() for column in columns)
    reader = connection.sql(f"SELECT {selected} FROM (\n{query}\n)").to_arrow_reader(_READ_ROWS)
    yield _table(pa.RecordBatch.from_pylist([], reader.schema), columns)
    for batch in reader:
        yield _table(batch, columns)


def known_to_sql(schema: Schema) -> Schema:
    """The columns that SQL can name: those without the character NUL."""
    return {name: kind for name, kind in schema.items() if "\0" not in name}


def as_duckdb_json(rows: pa.Table) -> pa.Table:
    """The rows with JSON columns that DuckDB takes as they are: it refuses to convert lone surrogates."""
    fields = [
        field.with_metadata(_DUCKDB_JSON) if column_type(field) == "json" else field for field in rows.schema
    ]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def _table(batch: pa.RecordBatch, columns: list[Column]) -> pa.Table:
    """Rows of the result in the types that they have here."""
    arrays, schema = [], {}
    for column in columns:
        array, schema[column.name] = batch.column(column.name), column.kind
        if column.kind == "json":
            array = _canonical(column.name, array.to_pylist())
        arrays.append(array.cast(arrow_field(column.name, column.kind or "string").type))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _canonical(name: str, texts: list[str | None]) -> pa.Array:
    """Texts of DuckDB's JSON as ours. Raises RunError for NaN and infinity, which DuckDB's has."""
    try:
        return column_of([None if text is None else json_value(text) for text in texts], "json")
    except ValueError as error:
        raise RunError(f"the column {name!r} of the result: {error}") from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
