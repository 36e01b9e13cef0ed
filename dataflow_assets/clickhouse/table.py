"""The table that a step is exported to: made with the right types, or checked column by column."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from dataflow_assets.batch import ROW_ID, ColumnType, Schema
from dataflow_assets.clickhouse.address import Address
from dataflow_assets.clickhouse.connection import Connection, quoted
from dataflow_assets.errors import ConfigError, RunError

BATCH, HASH, VERSION = "dataflow_batch", "dataflow_hash", "dataflow_version"
_OWN = {BATCH: "LowCardinality(String)", HASH: "LowCardinality(String)", VERSION: "UInt64"}
_TYPES: dict[ColumnType, str] = {
    "string": "String",
    "int64": "Int64",
    "float64": "Float64",
    "bool": "Bool",
    "json": "String",
}
_WRAPPED = re.compile(r"(?:LowCardinality|Nullable)\((.*)\)")
_VECTOR = re.compile(r"Array\(Float(32|64)\)")
_VERSIONED = re.compile(rf"ReplacingMergeTree\(.*\b{VERSION}\b")


class Table(NamedTuple):
    """A table that takes the columns of a step. `vectors` has those that are lists of numbers there."""

    name: str
    columns: Schema
    vectors: Mapping[str, int]

    def rows(self, batch: str, content_hash: str, version: int, table: pa.Table) -> pa.Table:
        """Rows as they are inserted. Raises RunError for a value that is no vector of numbers."""
        own = (pa.scalar(batch), pa.scalar(content_hash), pa.scalar(version, pa.uint64()))
        arrays = [
            _vectors(table, name, self.vectors[name]) if name in self.vectors else table[name]
            for name in table.column_names
        ]
        arrays += [pa.repeat(value, table.num_rows) for value in own]
        return pa.Table.from_arrays(arrays, names=[*table.column_names, *_OWN])


def _vectors(table: pa.Table, name: str, bits: int) -> pa.Array:
    """A JSON column of lists of numbers as one of Arrow lists."""
    numbers, ends = [], [0]
    for row_id, text in zip(table[ROW_ID].to_pylist(), table[name].to_pylist(), strict=True):
        value = None if text is None else orjson.loads(text)
        if not isinstance(value, list) or not all(type(number) in (int, float) for number in value):
            found = "null" if text is None else f"{text:.60}"
            raise RunError(
                f"column {name!r} of row {row_id} holds {found}; expected a list of numbers, for it is a "
                "vector in the table; drop such rows in a step before"
            )
        numbers += value
        ends.append(len(numbers))
    kind = np.float32 if bits == 32 else np.float64
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(np.array(numbers, kind)))


def table_for(connection: Connection, address: Address, columns: Schema, lengths: Mapping[str, int]) -> Table:
    """The table of this address, made where it is missing; `lengths` are those of the vectors then.

    Raises ConfigError where the table that is there cannot take the columns, with what to do.
    """
    for name in columns:
        if not name or name in _OWN:
            raise ConfigError(
                f"the table cannot have a column of a step called {name!r}; rename it in a step"
            )
    name = f"{quoted(address.database)}.{quoted(address.table)}"
    where = {"database": address.database, "table": address.table}
    found = connection.rows(
        "SELECT name, type FROM system.columns WHERE database = {database:String} AND table = {table:String}",
        **where,
    )
    if not found:
        connection.run(_creation(name, columns, lengths))
        return Table(name, columns, dict.fromkeys(lengths, 32))
    types = {str(column): str(kind) for column, kind in found}
    engine = connection.rows(
        "SELECT engine_full, sorting_key FROM system.tables"
        " WHERE database = {database:String} AND name = {table:String}",
        **where,
    )
    problems = _engine_problems(*map(str, engine[0])) or _column_problems(name, columns, types, lengths)
    if problems:
        raise ConfigError([f"{address}: {problem}" for problem in problems])
    bits = {column: _VECTOR.fullmatch(types[column]) for column in columns}
    return Table(name, columns, {column: int(match[1]) for column, match in bits.items() if match})


def _creation(name: str, columns: Schema, lengths: Mapping[str, int]) -> str:
    lines = [f"{quoted(column)} {type_of(column, kind, lengths)}" for column, kind in columns.items()]
    lines += [f"{column} {kind}" for column, kind in _OWN.items()]
    lines += [
        f"CONSTRAINT {quoted(f'{column}_length')} CHECK length({quoted(column)}) = {length}"
        for column, length in lengths.items()
    ]
    return (
        f"CREATE TABLE {name} (\n  {(',' + chr(10) + '  ').join(lines)}\n)\n"
        f"ENGINE = ReplacingMergeTree({VERSION}) ORDER BY {ROW_ID}"
    )


def type_of(column: str, kind: ColumnType, vectors: Mapping[str, int] | Sequence[str] = ()) -> str:
    """The type that a column of a new table gets."""
    if column in vectors:
        return "Array(Float32)"
    return _TYPES[kind] if column == ROW_ID else f"Nullable({_TYPES[kind]})"


def _engine_problems(engine: str, sorting_key: str) -> list[str]:
    if _VERSIONED.search(engine) and sorting_key == ROW_ID:
        return []
    return [
        f"the table has the engine {engine[:200]!r}; expected ReplacingMergeTree({VERSION}) ORDER BY "
        f"{ROW_ID}, so that a row that is sent again replaces itself; export to a table that is not there yet"
    ]


def _column_problems(
    table: str, columns: Schema, types: Mapping[str, str], lengths: Mapping[str, int]
) -> list[str]:
    wanted = {column: type_of(column, kind, lengths) for column, kind in columns.items()} | _OWN
    problems = []
    for column, kind in wanted.items():
        found = types.get(column)
        if found is None:
            problems.append(
                f"the table has no column {column!r}; ALTER TABLE {table} ADD COLUMN {quoted(column)} {kind}"
            )
        elif not _fits(_bare(kind), found, columns.get(column)):
            problems.append(f"the column {column!r} of the table is {found}, the step's needs {kind}")
    return problems


def _fits(wanted: str, found: str, kind: ColumnType | None) -> bool:
    if _VECTOR.fullmatch(found):
        return kind == "json"
    return _bare(found) == wanted


def _bare(kind: str) -> str:
    while match := _WRAPPED.fullmatch(kind):
        kind = match[1]
    return kind
