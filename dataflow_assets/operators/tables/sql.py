"""Runs a query over all rows of a step, in a DuckDB of its own that reads no file."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pydantic import Field

from dataflow_assets.batch import ROW_ID, ColumnType, Schema, arrow_field
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators.operator import Params, Summaries
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.regrouping import Regrouped, RegroupingOperator
from dataflow_assets.operators.tables.sql_database import Database, Described, known_to_sql, open_database
from dataflow_assets.optional_packages import require

_NOBODY = pa.array([], pa.large_string())


class _SqlParams(Params):
    query: str = Field(
        min_length=1, max_length=100_000, description="One SELECT of DuckDB's SQL over the table `input`."
    )
    memory_mb: int = Field(1024, ge=128, description="The most MiB of memory that DuckDB uses.")


@register
class Sql(RegroupingOperator):
    """Runs a DuckDB query over all rows of a step: `SELECT … FROM input`.

    Grain: as the query says; the result is cut into as many batches as came in, of about the same
    size. Scope: the whole data set. Reads and writes what the query names. JSON columns have the type
    JSON (a value with a lone surrogate is not valid to DuckDB: `json_valid` tells); of the result,
    integers are int64 (a HUGEINT beyond it ends the run), DECIMAL and FLOAT float64, lists and structs
    JSON, dates and times text.

    Where the result has `row_id`, rows keep their ids, each at most once, and the input rows that it
    lacks are rejected as `not_in_result`. Where it has none (GROUP BY), its rows are new, called
    `sql:1`, `sql:2`, …, and no input row is listed as rejected. Without ORDER BY rows come as they came
    in, new ones sorted by all columns; end an ORDER BY with `row_id`, so that no two rows are equal to
    it, and the result is the same for every batch size. `random()` and `now()` give another result each
    time. The query cannot read files, load extensions or change settings.

    Raises ConfigError, before any work, for a mistake in the query; RunError where it fails on the
    data. DuckDB holds at most `memory_mb` and works in temporary files above it, where the input and the
    result are too; what it cannot do in them, such as an order or a join of very wide rows, ends the run
    and says so. The state holds the result once more. New rows make every batch again. Needs the extra
    `sql`.

    Example:
        - name: best_of_each
          type: sql
          params:
            query: |
              SELECT * FROM input
              QUALIFY row_number() OVER (PARTITION BY domain ORDER BY score DESC, row_id) <= 100
    """

    name = "sql"
    Params = _SqlParams
    params: _SqlParams

    def __init__(self, params: _SqlParams | None = None) -> None:
        require({"duckdb": "sql"}, f"operator {self.name!r}")  # the columns of the result are its answer
        super().__init__(params)
        self._described: dict[tuple[tuple[str, ColumnType], ...], Described] = {}

    def output_schema(self, schema: Schema) -> Schema:
        """The columns of the result, `row_id` first. Raises ConfigError for a mistake in the query."""
        columns = self._describe(schema).columns
        kinds: Schema = {column.name: column.kind or "string" for column in columns}
        return {ROW_ID: "string", **kinds}

    def touched(self, schema: Schema) -> set[str]:
        """Every column but `row_id`: the query may change any."""
        return (set(schema) | set(self.output_schema(schema))) - {ROW_ID}

    def keeps_rows(self, schema: Schema) -> bool:
        """Whether the result's rows are those of the input."""
        return self._describe(schema).keeps_ids

    @property
    def _query(self) -> str:
        return self.params.query.strip().rstrip(";")

    def _describe(self, schema: Schema) -> Described:
        known = known_to_sql(schema)
        columns = tuple(known.items())
        if columns not in self._described:
            self._described[columns] = self._checked(known)
        return self._described[columns]

    def _checked(self, schema: Schema) -> Described:
        """What the query gives for rows with these columns. Raises ConfigError."""
        import duckdb

        try:
            with open_database(self.params.memory_mb) as database:
                database.make_tables(schema)
                described = database.describe(self._query)
        except duckdb.Error as error:
            raise self._mistake(_one_line(error)) from error
        if described is None:
            raise self._mistake("the query is no single SELECT")
        names = [column.name.lower() for column in described.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise self._mistake(
                f"the result has two columns {', '.join(map(repr, twice))}; give each its name"
            )
        for column in described.columns:
            if column.kind is None or (column.name == ROW_ID and column.kind != "string"):
                wanted = "the row's own" if column.name == ROW_ID else "one that a column here can hold"
                raise self._mistake(
                    f"the column {column.name!r} of the result has the type {column.sql_type}, expected "
                    f"{wanted}; cast it in the query"
                )
        return described

    def _mistake(self, message: str) -> ConfigError:
        return ConfigError(f"operator {self.name!r}: {message}")

    def regroup(self, batches: Summaries) -> Iterator[tuple[str, Regrouped]]:
        """The result of the query, cut into batches."""
        import duckdb

        try:
            with open_database(self.params.memory_mb) as database:
                counts, schema = database.fill(batches)
                if counts:
                    yield from self._result(database, counts, self._describe(schema))
        except duckdb.OutOfMemoryException as error:
            raise RunError(
                f"operator {self.name!r}: the query needs more than {self.params.memory_mb} MiB; raise "
                f"`memory_mb` ({_one_line(error)[:200]})"
            ) from error
        except duckdb.Error as error:
            raise RunError(f"operator {self.name!r}: the query failed: {_one_line(error)}") from error

    def _result(
        self, database: Database, counts: Mapping[str, int], described: Described
    ) -> Iterator[tuple[str, Regrouped]]:
        database.make(self._query)
        if described.keeps_ids and (strange := database.strange_id()) is not None:
            raise RunError(
                f"operator {self.name!r}: the result has {strange[1]} rows with the {ROW_ID!r} "
                f"{strange[0]!r}, of which {strange[2]} came in; give each row once at most, or leave "
                f"{ROW_ID!r} out for new rows"
            )
        database.put_in_order(described)
        rows, tables = database.result(described.columns)
        stream = _RowStream(tables)
        begin = made = 0
        for number, (key, count) in enumerate(counts.items(), start=1):
            end = rows * number // len(counts)
            table = stream.next_rows(end - made)
            table = _in_place(table) if described.keeps_ids else _numbered(table, made)
            dropped = database.dropped(begin, begin + count) if described.keeps_ids else _NOBODY
            yield key, Regrouped(table, dropped)
            begin, made = begin + count, end


class _RowStream:
    """A stream of tables of any size, given out by the number of rows; the first is never missing."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._rest = next(tables)

    def next_rows(self, count: int) -> pa.Table:
        """The next rows, as many as asked for."""
        parts = []
        while True:
            parts.append(self._rest.slice(0, count))
            self._rest = self._rest.slice(count)
            count -= parts[-1].num_rows
            if not count:
                return pa.concat_tables(parts)
            self._rest = next(self._tables)


def _in_place(table: pa.Table) -> pa.Table:
    """The table with `row_id` first."""
    return table.select([ROW_ID, *(name for name in table.column_names if name != ROW_ID)])


def _numbered(table: pa.Table, before: int) -> pa.Table:
    """New rows, numbered from 1 over all batches."""
    ids = [f"sql:{before + number + 1}" for number in range(table.num_rows)]
    return table.add_column(0, arrow_field(ROW_ID, "string"), pa.array(ids, pa.large_string()))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
