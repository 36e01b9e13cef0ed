"""The store of corpora: conversations put in by key, read back in order, found, soft-deleted, restored."""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import xxhash
from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, literal_column, select, update

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    json_text,
    json_value,
    rows_of,
    table_of,
    widen_schema,
)
from dataflow_assets.corpora.cursors import Cursor, Left
from dataflow_assets.corpora.database import CorpusDatabase
from dataflow_assets.corpora.queries import TurnQuery, conditions
from dataflow_assets.corpora.shapes import (
    TURN_VALUES,
    Flat,
    Shape,
    Stored,
    assembled,
    flattened,
    shape_of_columns,
)
from dataflow_assets.corpora.tables import CURSORS, DATA_COLUMNS, DATASETS, LEFT, NAME_CHARS, TURNS
from dataflow_assets.databases.upserts import Upsert, upsert
from dataflow_assets.errors import ConfigError, CorpusError, UnwritableValue
from dataflow_assets.sources.columns import types_of

_V = TypeVar("_V")
MaybeSchema = Mapping[str, ColumnType | None]
_KEYS_AT_ONCE = 400
_PAGE_ROWS = 1000
_REPLACED = (*DATA_COLUMNS, "extras")


class Dataset(NamedTuple):
    """A data set of the store: its shape, and the columns of its records with their types."""

    id: int
    name: str
    shape: Shape
    columns: Schema
    created_at: float


class DatasetCounts(NamedTuple):
    """A data set in numbers: conversations and turns that are there, and turns that are soft-deleted."""

    name: str
    conversations: int
    turns: int
    deleted_turns: int


class Put(NamedTuple):
    """What a put did: conversations and turns that are new, turns that were replaced, turns that went.

    `deleted` and `restored` are turns that were soft-deleted and brought back, with their conversations;
    `unchanged` are those that were there with the same values.
    """

    conversations: int = 0
    new: int = 0
    replaced: int = 0
    removed: int = 0
    deleted: int = 0
    restored: int = 0
    unchanged: int = 0

    def plus(self, other: "Put") -> "Put":
        """Both together."""
        return Put(*(mine + its for mine, its in zip(self, other, strict=True)))


class Corpora:
    """A store of corpora in a database: a path, or a URL of SQLite, PostgreSQL, MySQL or MariaDB."""

    def __init__(self, place: str, create: bool = False) -> None:
        self.database = CorpusDatabase(place, create)

    def close(self) -> None:
        """Ends the connections."""
        self.database.close()

    def __enter__(self) -> "Corpora":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def find_dataset(self, name: str) -> Dataset | None:
        """The data set of this name, or None."""
        with self.database.reading() as connection:
            row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).one_or_none()
            return None if row is None else _dataset_of(row)

    def dataset(self, name: str) -> Dataset:
        """The data set of this name. Raises ConfigError that lists those that are there."""
        if (found := self.find_dataset(name)) is not None:
            return found
        with self.database.reading() as connection:
            names = connection.execute(select(DATASETS.c.name).order_by(DATASETS.c.name).limit(10)).scalars()
            found = ", ".join(map(repr, names)) or "none"
        raise ConfigError(f"there is no data set {name!r} in {self.database.place}; found {found}")

    def dataset_for(self, name: str, shape: Shape | None, columns: Sequence[str]) -> Dataset:
        """The data set into which rows with these columns go; without a shape the columns say it.

        Raises ConfigError where they do not, the data set has another shape, or rows with these columns
        would be turns of it that say nothing.
        """
        found = self.find_dataset(name)
        if found is not None and shape is None:
            _check_fits(found, columns)
            return found
        return self.make_dataset(name, shape or shape_of_columns(columns))

    def make_dataset(self, name: str, shape: Shape) -> Dataset:
        """The data set of this name, made where there is none. Raises ConfigError for another shape."""
        _check_name(name)

        def make(connection: Connection) -> Dataset:
            row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).one_or_none()
            if row is None:
                new = {"name": name, "shape": shape.as_json(), "columns": "{}", "next_row": 1}
                connection.execute(insert(DATASETS), {**new, "created_at": time.time()})
                row = connection.execute(select(DATASETS).where(DATASETS.c.name == name)).one()
            return _dataset_of(row)

        found = self.database.write(make)
        if found.shape != shape:
            raise ConfigError(
                f"the data set {name!r} has conversations of shape {found.shape.as_json()}, found "
                f"{shape.as_json()}: name another data set"
            )
        return found

    def datasets(self) -> list[DatasetCounts]:
        """The data sets by name, in numbers."""
        with self.database.reading() as connection:
            names = connection.execute(select(DATASETS.c.id, DATASETS.c.name).order_by(DATASETS.c.name)).all()
            return [self._counts(connection, id, name) for id, name in names]

    def put(
        self,
        dataset: Dataset,
        table: pa.Table,
        on: Connection | None = None,
        also: Callable[[Connection], object] = lambda connection: None,
    ) -> Put:
        """Puts the rows of a table (with `row_id`) in as conversations, in one transaction.

        A conversation that is there by its `row_id` is replaced, and keeps its number, its ids and
        whether it is deleted. A turn with the same values is left alone, with its revision. `also` is done
        in the same transaction, on the connection `on` where one is held. Raises CorpusError.
        """
        keys = table[ROW_ID].to_pylist()
        if not keys:
            return Put()
        if len(set(keys)) < len(keys) or None in keys:
            twice = next(key for key in keys if key is None or keys.count(key) > 1)
            raise CorpusError(f"row_id {twice!r} stands twice or is missing; expected one for each row")
        schema = types_of(table.drop_columns([ROW_ID]))
        records = rows_of(table.select([name for name, kind in schema.items() if kind is not None]))
        flat = {key: _flat(key, record, dataset.shape) for key, record in zip(keys, records, strict=True)}

        def write(connection: Connection) -> Put:
            done = self._put(connection, dataset, flat, schema)
            also(connection)
            return done

        return self.database.write(write, on)

    def keep_only(self, dataset: Dataset, kept: Container[str]) -> Iterator[Put]:
        """Soft-deletes the conversations whose `row_hash` is not among these, brings back those that are.

        A page of conversations is one transaction; gives what was done to each.
        """
        number, hash = TURNS.c.row_identifier, TURNS.c.row_hash
        of, after = TURNS.c.dataset_file_id == dataset.id, 0
        while True:
            page = select(number, hash).where(of, number > after).distinct().order_by(number)
            with self.database.reading() as connection:
                found = connection.execute(page.limit(_PAGE_ROWS)).all()
            if not found:
                return
            gone = [row.row_identifier for row in found if row.row_hash not in kept]
            there = [row.row_identifier for row in found if row.row_hash in kept]

            def mark(connection: Connection, gone: list[int] = gone, there: list[int] = there) -> Put:
                return Put(
                    deleted=_mark_deleted(connection, [of, number.in_(gone)], True),
                    restored=_mark_deleted(connection, [of, number.in_(there)], False),
                )

            yield self.database.write(mark)
            after = found[-1].row_identifier

    def conversations(
        self, dataset: Dataset, after: int = 0, limit: int | None = None, query: TurnQuery | None = None
    ) -> Iterator[tuple[int, dict[str, object]]]:
        """The conversations whose number is above `after`, in order: their numbers and records.

        With a query those of which at least one turn fits it.
        """
        for number, rows in self._grouped(dataset, after, limit, query):
            yield number, assembled(map(_stored, rows), dataset.shape)

    def tables(self, dataset: Dataset, page_rows: int = _PAGE_ROWS) -> Iterator[pa.Table]:
        """All conversations that are there now, as tables with `row_id` and the columns of the data set."""
        query = TurnQuery(last=self.last_number(dataset))
        return (table for _, table in self.pages(dataset, page_rows, query))

    def pages(
        self, dataset: Dataset, page_rows: int, query: TurnQuery
    ) -> Iterator[tuple[list[int], pa.Table]]:
        """The conversations of which a turn fits the query, in order: their numbers, and as a table."""
        schema: Schema = {ROW_ID: "string", **dataset.columns}
        numbers: list[int] = []
        rows: list[dict[str, object]] = []
        for number, turns in self._grouped(dataset, 0, None, query):
            numbers.append(number)
            rows.append({ROW_ID: turns[0].row_key, **assembled(map(_stored, turns), dataset.shape)})
            if len(rows) == page_rows:
                yield numbers, _table(rows, schema)
                numbers, rows = [], []
        if rows:
            yield numbers, _table(rows, schema)

    def turns(self, dataset: Dataset, query: TurnQuery, after: int = 0, limit: int = 20) -> list[Row[Any]]:
        """Turns that fit the query and stand behind the id `after`, in order of `row_identifier`, `id`."""
        behind = select(TURNS.c.row_identifier).where(TURNS.c.id == after).scalar_subquery()
        place = TURNS.c.row_identifier, TURNS.c.id
        chosen = select(TURNS).where(*conditions(dataset.id, query))
        if after:
            chosen = chosen.where((place[0] > behind) | ((place[0] == behind) & (place[1] > after)))
        with self.database.reading() as connection:
            return list(connection.execute(chosen.order_by(*place).limit(limit)).all())

    def mark_deleted(self, dataset: Dataset, query: TurnQuery, deleted: bool) -> int:
        """Soft-deletes the turns that fit the query, or brings them back; how many there were."""
        chosen = conditions(dataset.id, query)
        return self.database.write(lambda connection: _mark_deleted(connection, chosen, deleted))

    def tasks(self) -> list[tuple[str, Cursor]]:
        """Where imports and enhancements stand, each with the name of its data set, newest last."""
        query = select(DATASETS.c.name, CURSORS).join_from(
            CURSORS, DATASETS, CURSORS.c.dataset_file_id == DATASETS.c.id
        )
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(CURSORS.c.changed_at)).all()
            return [(name, Cursor(*cursor)) for name, *cursor in rows]

    def left(self, dataset: Dataset, task: str, limit: int) -> list[Left]:
        """Turns that a task left as they were, by id."""
        columns = LEFT.c.turn_id, LEFT.c.kind, LEFT.c.reason
        of = LEFT.c.dataset_file_id == dataset.id, LEFT.c.task == task
        with self.database.reading() as connection:
            rows = connection.execute(select(*columns).where(*of).order_by(LEFT.c.turn_id).limit(limit))
            return [Left(*row) for row in rows]

    def last_number(self, dataset: Dataset) -> int:
        """The number of the newest conversation; 0 without one."""
        newest = select(func.max(TURNS.c.row_identifier)).where(TURNS.c.dataset_file_id == dataset.id)
        with self.database.reading() as connection:
            return connection.execute(newest).scalar() or 0

    def row_count(self, dataset: Dataset) -> int:
        """The rows of the data set in the table, deleted ones too."""
        with self.database.reading() as connection:
            return _rows_in(connection, dataset.id)

    def _grouped(
        self, dataset: Dataset, after: int, limit: int | None, query: TurnQuery | None
    ) -> Iterator[tuple[int, list[Row[Any]]]]:
        """The turns of each conversation, page by page; deleted ones too where another one is left."""
        fits = conditions(dataset.id, query or TurnQuery())
        left = limit
        while left is None or left > 0:
            size = _PAGE_ROWS if left is None else min(left, _PAGE_ROWS)
            number = TURNS.c.row_identifier
            page = select(number).where(*fits, number > after).distinct().order_by(number).limit(size)
            with self.database.reading() as connection:
                numbers = connection.execute(page).scalars().all()
                if not numbers:
                    return
                within = TURNS.c.dataset_file_id == dataset.id, number.in_(numbers)
                rows = connection.execute(select(TURNS).where(*within).order_by(number, TURNS.c.id)).all()
            groups: dict[int, list[Row[Any]]] = {number: [] for number in numbers}
            for row in rows:
                groups[row.row_identifier].append(row)
            yield from groups.items()
            after = numbers[-1]
            left = None if left is None else left - len(numbers)

    def _counts(self, connection: Connection, id: int, name: str) -> DatasetCounts:
        number, of = TURNS.c.row_identifier, TURNS.c.dataset_file_id == id
        live = select(func.count(number.distinct()), func.count()).where(of, TURNS.c.is_deleted.is_(False))
        conversations, turns = connection.execute(live).one()
        return DatasetCounts(name, conversations, turns, _rows_in(connection, id) - turns)

    def _put(
        self,
        connection: Connection,
        dataset: Dataset,
        flat: Mapping[str, Sequence[Flat]],
        schema: MaybeSchema,
    ) -> Put:
        locked = select(DATASETS).where(DATASETS.c.id == dataset.id).with_for_update()
        row = connection.execute(locked).one()
        hashes = {key: row_hash(key) for key in flat}
        known = _known(connection, dataset.id, hashes.values())
        next_row = row.next_row
        numbers: dict[str, int] = {}
        for hash in hashes.values():
            turns = known.get(hash)
            numbers[hash] = turns[0].row_identifier if turns else next_row
            next_row += turns is None
        new = [
            _row(dataset.id, numbers[hashes[key]], number, key, hashes[key], turn)
            for key, turns in flat.items()
            for number, turn in enumerate(turns)
        ]
        changed = _changed(connection, dataset.id, new, known)
        if changed:
            connection.execute(self._upsert(), changed)
        beyond = [
            turn.id
            for key, turns in flat.items()
            for turn in known.get(hashes[key], ())
            if turn.turn_taking >= len(turns)
        ]
        for ids in _pieces(beyond):
            connection.execute(delete(TURNS).where(TURNS.c.id.in_(ids)))
        _check_count(connection, dataset, hashes.values(), len(new))
        merged = widen_schema([_columns_of(row.columns), schema])
        changes = {"next_row": next_row, "columns": json_text(merged)}
        connection.execute(update(DATASETS).where(DATASETS.c.id == dataset.id).values(**changes))
        there, unchanged = sum(map(len, known.values())) - len(beyond), len(new) - len(changed)
        return Put(
            conversations=len(flat) - len(known),
            new=len(new) - there,
            replaced=there - unchanged,
            removed=len(beyond),
            unchanged=unchanged,
        )

    def _upsert(self) -> Upsert:
        keys = "dataset_file_id", "row_hash", "turn_taking"
        changed = {"revision": TURNS.c.revision + literal_column("1")}
        return upsert(TURNS, self.database.dialect, keys, _REPLACED, change=changed)


def _flat(key: str, record: Mapping[str, object], shape: Shape) -> list[Flat]:
    try:
        return flattened(record, shape)
    except ValueError:
        raise UnwritableValue(
            f"the row {key!r} holds NaN or infinity, which JSON does not have; expected finite numbers. "
            "Nothing of its batch was written: take such rows out first"
        ) from None


def _check_name(name: str) -> None:
    if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > NAME_CHARS:
        raise ConfigError(
            f"{name!r} is no name of a data set; expected 1 to {NAME_CHARS} printable characters, without a "
            "blank at either end"
        )


def _check_fits(dataset: Dataset, columns: Sequence[str]) -> None:
    """Raises ConfigError where none of these columns is one in which the data set has its conversations."""
    shape = dataset.shape
    wanted = [column for name, column in shape.columns.items() if name in ("prompt", "response")]
    wanted = [shape.messages] if shape.messages else wanted or list(shape.columns.values())
    if columns and not set(wanted) & set(columns):
        raise ConfigError(
            f"the data set {dataset.name!r} has its conversations in {' and '.join(map(repr, wanted))}, "
            f"found the columns {', '.join(columns)}: they would be turns without a text; give them those "
            "names, or name another data set"
        )


def _dataset_of(row: Row[Any]) -> Dataset:
    columns: Schema = {name: kind or "string" for name, kind in _columns_of(row.columns).items()}
    return Dataset(row.id, row.name, Shape.of_json(row.shape), columns, row.created_at)


def _columns_of(text: str) -> MaybeSchema:
    columns = json_value(text)
    assert isinstance(columns, dict)
    return columns


def _stored(row: Row[Any]) -> Stored:
    values = {column: getattr(row, column) for column in TURN_VALUES}
    return Stored(values, row.data_tools, row.extras, row.is_deleted)


def _table(rows: Sequence[Mapping[str, object]], schema: Schema) -> pa.Table:
    return table_of({name: [row.get(name) for row in rows] for name in schema}, schema)


def _row(dataset: int, identifier: int, turn: int, key: str, hash: str, flat: Flat) -> dict[str, object]:
    return {
        "dataset_file_id": dataset,
        "row_identifier": identifier,
        "turn_taking": turn,
        "row_hash": hash,
        "row_key": key.replace("\0", "\ufffd"),
        "is_deleted": False,
        "revision": 0,
        **flat.values,
        "data_tools": flat.tools,
        "extras": flat.extras,
    }


def row_hash(row_id: str) -> str:
    """The hash by which a conversation is found, of the id that it came with."""
    return xxhash.xxh3_128_hexdigest(row_id.encode())


def _mark_deleted(connection: Connection, chosen: Sequence[ColumnElement[bool]], deleted: bool) -> int:
    other = update(TURNS).where(*chosen, TURNS.c.is_deleted.is_(not deleted))
    return connection.execute(other.values(is_deleted=deleted, revision=TURNS.c.revision + 1)).rowcount


def _known(connection: Connection, dataset: int, hashes: Iterable[str]) -> dict[str, list[Any]]:
    """The turns that are there of these conversations, by the hash of their key, in order."""
    columns = TURNS.c.row_hash, TURNS.c.row_identifier, TURNS.c.turn_taking, TURNS.c.id
    known: dict[str, list[Any]] = {}
    for piece in _pieces(list(hashes)):
        found = select(*columns).where(TURNS.c.dataset_file_id == dataset, TURNS.c.row_hash.in_(piece))
        for row in connection.execute(found.order_by(TURNS.c.id)):
            known.setdefault(row.row_hash, []).append(row)
    return known


def _changed(
    connection: Connection, dataset: int, rows: Sequence[dict[str, object]], known: Iterable[str]
) -> list[dict[str, object]]:
    """Those of these rows that are new, or have another value than the turn that is there."""
    wanted = {(row["row_hash"], row["turn_taking"]): row for row in rows}
    columns = TURNS.c.row_hash, TURNS.c.turn_taking, *(TURNS.c[name] for name in _REPLACED)
    for piece in _pieces(list(known)):
        found = select(*columns).where(TURNS.c.dataset_file_id == dataset, TURNS.c.row_hash.in_(piece))
        for hash, turn, *values in map(tuple, connection.execute(found)):
            row = wanted.get((hash, turn))
            if row is not None and values == [row[name] for name in _REPLACED]:
                del wanted[hash, turn]
    return list(wanted.values())


def _check_count(connection: Connection, dataset: Dataset, hashes: Iterable[str], expected: int) -> None:
    found = sum(map(len, _known(connection, dataset.id, hashes).values()))
    if found != expected:
        raise CorpusError(
            f"the data set {dataset.name!r} has {found} rows of these conversations after a write, expected "
            f"{expected}; nothing was written: does something else write to the table?"
        )


def _rows_in(connection: Connection, dataset: int) -> int:
    return connection.execute(select(func.count()).where(TURNS.c.dataset_file_id == dataset)).scalar_one()


def _pieces(values: Sequence[_V]) -> Iterator[Sequence[_V]]:
    for start in range(0, len(values), _KEYS_AT_ONCE):
        yield values[start : start + _KEYS_AT_ONCE]
