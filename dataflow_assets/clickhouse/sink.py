"""Writes a step into a ClickHouse table, so that a row is there once however often it is sent.

A batch is sent where the table does not hold it whole: its rows carry the batch's key, the content hash
and a version that grows with each export. `ReplacingMergeTree` lets the newest version of a row stay,
and at the end what belongs to no batch as it is now is deleted, so that a plain count is right.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.batch import ROW_ID, json_value
from dataflow_assets.clickhouse.address import Address
from dataflow_assets.clickhouse.connection import Connection, connect
from dataflow_assets.clickhouse.table import BATCH, HASH, VERSION, Table, table_for
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.finished_step import finished_step
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.step_rows import StepRows

_INSERT_ROWS = 100_000
_INSERT_BYTES = 64 * 2**20
_NAMED_AT_ONCE = 500
_ROUNDS = 3
_ADVICE = "run the same command again, what is complete is not sent again"
_GROUP = f"{BATCH}, {HASH}, {VERSION}"
Named = tuple[str, str]


class Stored(NamedTuple):
    """Rows of a table that were sent together: a batch as it was in one export."""

    batch: str
    content_hash: str
    version: int

    @property
    def named(self) -> Named:
        """Which batch it is, whenever it was sent."""
        return self.batch, self.content_hash


class Sent(NamedTuple):
    """What an export did: rows of the step, and batches sent and left alone, and rows deleted."""

    rows: int
    batches_sent: int
    batches_kept: int
    rows_deleted: int


def export_to_clickhouse(
    work: PipelineWork,
    step: str | None,
    url: str,
    allow_partial: bool = False,
    vectors: Sequence[str] = (),
) -> Sent:
    """Brings a table up to the kept rows of a step (default: the last).

    `vectors` are columns with JSON lists of numbers that become Array(Float32) in a new table. Raises
    ConfigError for a table that cannot take the columns or holds other rows, RunError as `export_step`
    does, where the server fails, or where the table does not hold what was sent.
    """
    address = Address.of(url)
    rows = finished_step(work, step, allow_partial).kept
    columns = rows.columns
    if unknown := [name for name in vectors if columns.get(name) != "json"]:
        raise ConfigError(f"--vector {unknown[0]!r} is no JSON column of the step, which has {list(columns)}")
    connection = connect(address, "export to ClickHouse", RunError, _ADVICE)
    lengths = {name: _length_of(rows, name) for name in vectors}
    table = table_for(connection, address, columns, lengths)
    return _Export(connection, table, f"{work.pipeline.name}/{_name_of(work, step)}/", rows).run()


def _name_of(work: PipelineWork, step: str | None) -> str:
    return step or work.pipeline.ordered_steps[-1].name


def _length_of(rows: StepRows, column: str) -> int:
    """The length of the first vector. Raises RunError where there is none."""
    for table in rows.tables({column: "json"}):
        for text in table[column].to_pylist():
            value = None if text is None else json_value(text)
            if isinstance(value, list):
                return len(value)
    raise RunError(f"column {column!r} holds no list, so that the length of its vectors is not known")


class _Export:
    """One export into a table. `prefix` is before the key of each batch: pipeline and step."""

    def __init__(self, connection: Connection, table: Table, prefix: str, rows: StepRows) -> None:
        self._connection = connection
        self._table = table
        self._prefix = prefix
        self._rows = rows
        self._wanted = {
            (prefix + key, record.content_hash): record.rows_out for key, record in rows.records.items()
        }

    def run(self) -> Sent:
        """Sends what is missing, deletes what is no longer, counts; again where rows went meanwhile.

        Rows of an export that was broken off, newer than those of a batch that is right again, may take
        these with them in a merge before they are deleted themselves.
        """
        sent, deleted = set[Named](), 0
        for _ in range(_ROUNDS):
            missing, gone = self._round()
            sent |= missing
            deleted += gone
            rows = sum(self._wanted.values())
            if self._has(rows):
                return Sent(rows, len(sent), len(self._wanted) - len(sent), deleted)
        raise RunError(
            f"the table {self._table.name} does not keep the rows of the step: somebody else changes it; "
            "wait for them, and run the same command again"
        )

    def _round(self) -> tuple[set[Named], int]:
        """The batches that were sent, and the number of rows deleted."""
        stored = self._stored()
        self._refuse_others(stored)
        kept = self._whole(stored)
        missing = {batch for batch, rows in self._wanted.items() if rows and batch not in kept}
        if missing:
            version = max((group.version for group in stored), default=0) + 1
            self._send(missing, version)
            stored = self._stored()
            kept |= self._whole({group: n for group, n in stored.items() if group.version == version})
            self._refuse_incomplete(missing - kept.keys())
        gone = [group for group in stored if group not in kept.values()]
        self._delete(gone)
        return missing, sum(stored[group] for group in gone)

    def _stored(self) -> dict[Stored, int]:
        """What the table holds, and how many rows of each."""
        return self._counted("count()", "1")

    def _counted(self, count: str, condition: str) -> dict[Stored, int]:
        found = self._connection.rows(
            f"SELECT {_GROUP}, {count} FROM {self._table.name} WHERE {condition} GROUP BY {_GROUP}"
        )
        return {Stored(batch, content, int(version)): int(rows) for batch, content, version, rows in found}

    def _refuse_others(self, stored: Mapping[Stored, int]) -> None:
        for group in stored:
            if not group.batch.startswith(self._prefix):
                others = group.batch.rpartition("/")[0] or "others"
                raise ConfigError(
                    f"the table {self._table.name} holds rows of {others!r}, and this is "
                    f"{self._prefix[:-1]!r}; export each step to a table of its own"
                )

    def _whole(self, stored: Mapping[Stored, int]) -> dict[Named, Stored]:
        """The wanted batches of which the table holds every row, each with its newest version."""
        full = [group for group, rows in stored.items() if rows >= self._wanted.get(group.named, rows + 1)]
        whole = {}
        for some in _parts(sorted(full, key=lambda group: group.version)):
            rows = self._counted(f"uniqExact({ROW_ID})", f"({_GROUP}) IN ({_listed(some)})")
            whole |= {group.named: group for group in some if rows.get(group) == self._wanted[group.named]}
        return whole

    def _send(self, missing: Collection[Named], version: int) -> None:
        keys = {batch for batch, _ in missing}
        records = {key: record for key, record in self._rows.records.items() if self._prefix + key in keys}
        tables = (
            self._table.rows(self._prefix + key, records[key].content_hash, version, table)
            for key, table in replace(self._rows, records=records).batches(self._table.columns)
        )
        for rows in _joined(tables):
            self._connection.insert(self._table.name, rows)

    def _refuse_incomplete(self, batches: Collection[Named]) -> None:
        for batch, _ in sorted(batches):
            raise RunError(
                f"the table {self._table.name} does not hold every row of batch {batch!r} that was sent: two "
                "rows have one row_id, or somebody else changes the table; run the same command again"
            )

    def _delete(self, gone: Sequence[Stored]) -> None:
        """Deletes rows of batches that were made anew, cut otherwise, or are gone."""
        for some in _parts(gone):
            self._connection.run(f"DELETE FROM {self._table.name} WHERE ({_GROUP}) IN ({_listed(some)})")

    def _has(self, rows: int) -> bool:
        """Whether the table has that many rows, once copies of a row are merged."""
        if self._count() > rows:
            self._connection.run(f"OPTIMIZE TABLE {self._table.name} FINAL")
        return self._count() == rows

    def _count(self) -> int:
        return int(self._connection.rows(f"SELECT count() FROM {self._table.name}")[0][0])


def _joined(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The rows in tables of a good size for an insert: small ones together, large ones in parts."""
    waiting: list[pa.Table] = []
    for table in tables:
        parts = max(1, -(-table.nbytes // _INSERT_BYTES), -(-table.num_rows // _INSERT_ROWS))
        size = -(-table.num_rows // parts)
        for begin in range(0, table.num_rows, size or 1):
            waiting.append(table.slice(begin, size))
            rows, size_bytes = sum(map(len, waiting)), sum(part.nbytes for part in waiting)
            if rows >= _INSERT_ROWS or size_bytes >= _INSERT_BYTES:
                yield pa.concat_tables(waiting)
                waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _parts(groups: Sequence[Stored]) -> Iterator[Sequence[Stored]]:
    for begin in range(0, len(groups), _NAMED_AT_ONCE):
        yield groups[begin : begin + _NAMED_AT_ONCE]


def _listed(groups: Sequence[Stored]) -> str:
    """The groups as SQL; keys and hashes have no sign that needs an escape but are escaped all the same."""
    return ", ".join(f"({_text(g.batch)}, {_text(g.content_hash)}, {g.version})" for g in groups)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
