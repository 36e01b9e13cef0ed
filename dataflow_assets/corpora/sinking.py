"""A step of a pipeline into a store of corpora: as conversations, or as columns written back to its turns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from sqlalchemy import Connection

from dataflow_assets.batch import ROW_ID, Schema, rows_of
from dataflow_assets.control import StopFlag
from dataflow_assets.corpora.shapes import Shape
from dataflow_assets.corpora.store import Corpora, Dataset, Put, row_hash
from dataflow_assets.corpora.tables import DATA_COLUMNS
from dataflow_assets.corpora.writing import Change, write_back_as_read
from dataflow_assets.errors import ConfigError, CorpusError, UnguardedWrite
from dataflow_assets.finished_step import finished_step
from dataflow_assets.pipeline.names import SOURCE
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.sql.spec import CorpusSource


def put_step(
    work: PipelineWork,
    step: str | None,
    corpora: Corpora,
    name: str,
    stop: StopFlag,
    shape: Shape | None = None,
    allow_partial: bool = False,
    exactly: bool = False,
    told: Callable[[Put], None] = lambda put: None,
) -> Put:
    """Puts the kept rows of a step (default: the last) into a data set, each batch in one transaction.

    A row that is there by its `row_id` is replaced, so that a run that was killed is simply done again.
    With `exactly` the data set then has these rows alone: other conversations are soft-deleted, and those
    of the step brought back. Raises ConfigError where the step came out of that data set or `exactly` is
    asked of a part of a step, and what `finished_step` and `Corpora.put` raise.
    """
    if exactly and allow_partial:
        raise ConfigError(
            "`exactly` would delete what is merely missing of a step that is not whole; expected it without "
            "`allow_partial`"
        )
    source = work.pipeline.source
    if isinstance(source, CorpusSource) and source.dataset == name:
        raise ConfigError(
            f"the rows of {work.pipeline.name!r} came out of a data set {name!r}; expected another one to "
            "put them into, for they would be new conversations of it: `corpus write-back` changes "
            "turns in place"
        )
    rows = finished_step(work, step, allow_partial).kept
    columns = rows.columns
    dataset = corpora.dataset_for(name, shape, [column for column in columns if column != ROW_ID])
    before, done = corpora.row_count(dataset), Put()
    kept: set[str] = set()
    for table in rows.tables(columns):
        stop.raise_if_up()
        done = done.plus(corpora.put(dataset, table))
        told(done)
        if exactly:
            kept.update(map(row_hash, table[ROW_ID].to_pylist()))
    for marked in corpora.keep_only(dataset, kept) if exactly else ():
        stop.raise_if_up()
        done = done.plus(marked)
        told(done)
    _check_count(corpora, dataset, before + done.new - done.removed)
    return done


class WrittenBack(NamedTuple):
    """Turns that were changed, and those that had the values already."""

    written: int = 0
    were_so: int = 0


def write_back_step(
    work: PipelineWork,
    step: str | None,
    corpora: Corpora,
    write: Sequence[str],
    stop: StopFlag,
    allow_partial: bool = False,
    told: Callable[[WrittenBack], None] = lambda done: None,
) -> WrittenBack:
    """Writes columns of a step back to the turns that its rows are. A batch is one transaction.

    The pipeline's source is the data set with `rows: turns`. Raises ConfigError where it is not,
    UnguardedWrite where a row is no turn of it, or the turn was changed since it was read: nothing of its
    batch was changed.
    """
    source = work.pipeline.source
    if not isinstance(source, CorpusSource) or source.rows != "turns":
        raise ConfigError(
            f"the source of {work.pipeline.name!r} is not `corpus` with `rows: turns`; expected that, for "
            "the rows of other sources are no turns that could be changed"
        )
    dataset = corpora.dataset(source.dataset)
    rows = finished_step(work, step, allow_partial).kept
    back = {new: old for old, new in source.rename.items()}
    columns: Schema = {name: kind for name, kind in rows.columns.items() if back.get(name, name) in write}
    if missing := sorted(set(write) - {back.get(name, name) for name in columns}):
        raise ConfigError(f"the step has no column {', '.join(missing)}; found {', '.join(rows.columns)}")
    if unknown := sorted(set(write) - set(DATA_COLUMNS)):
        raise ConfigError(
            f"{', '.join(unknown)} cannot be written back; expected some of {', '.join(DATA_COLUMNS)}"
        )
    before, done = corpora.row_count(dataset), WrittenBack()
    as_read = _AsRead(work, back, columns)
    for table in rows.tables({**columns, ROW_ID: "string"}):
        stop.raise_if_up()
        changes, read = _changes(table, back), as_read.of(table[ROW_ID].to_pylist())

        def changed(
            on: Connection, changes: list[dict[str, object]] = changes, read: Mapping[int, Change] = read
        ) -> int:
            return write_back_as_read(on, dataset.id, changes, read)

        written = corpora.database.write(changed)
        done = WrittenBack(done.written + written, done.were_so + len(changes) - written)
        told(done)
    _check_count(corpora, dataset, before)
    return done


class _AsRead:
    """The columns of turns as the run read them; those of one piece of the source are held."""

    def __init__(self, work: PipelineWork, back: Mapping[str, str], columns: Schema) -> None:
        self._folder, manifest = work.folder_of(SOURCE), work.known_manifest()
        # Where the source is one batch, that of its first piece has the rows of all.
        self._batches = {file.slug: list(file.batches) or manifest.batches for file in manifest.files}
        self._names = {name: back.get(name, name) for name in columns if name in manifest.schema}
        self._held: tuple[Sequence[str], dict[int, Change]] = (), {}

    def of(self, row_ids: Sequence[str]) -> dict[int, Change]:
        """By the number of the turn; nothing for rows of no piece."""
        wanted: dict[str, list[int]] = {}
        for slug, _, number in (id.rpartition(":") for id in row_ids):
            wanted.setdefault(slug, []).append(int(number))
        found: dict[int, Change] = {}
        for slug in wanted.keys() & self._batches.keys():
            piece = self._rows_in(self._batches[slug])
            found |= {number: piece[number] for number in wanted[slug] if number in piece}
        return found

    def _rows_in(self, batches: Sequence[str]) -> dict[int, Change]:
        if self._held[0] != batches:
            turns: dict[int, Change] = {}
            for table in self._folder.read_each(batches):
                for row in rows_of(table.select([ROW_ID, *self._names])):
                    id = int(str(row[ROW_ID]).rpartition(":")[2])
                    turns[id] = {old: row[name] for name, old in self._names.items()}
            self._held = batches, turns
        return self._held[1]


def _changes(table: pa.Table, back: Mapping[str, str]) -> list[dict[str, object]]:
    changes: list[dict[str, object]] = []
    for row in rows_of(table):
        id = str(row.pop(ROW_ID))
        number = id.rpartition(":")[2]
        if not number.isdecimal():
            raise UnguardedWrite(
                f"the row {id!r} is no turn: its id ends in {number!r}, expected the id of a turn; nothing "
                "of its batch was changed"
            )
        changes.append({"id": int(number), **{back.get(name, name): value for name, value in row.items()}})
    return changes


def _check_count(corpora: Corpora, dataset: Dataset, expected: int) -> None:
    found = corpora.row_count(dataset)
    if found != expected:
        raise CorpusError(
            f"the data set {dataset.name!r} has {found} turns at the end, expected {expected}: something "
            "else has added or removed rows meanwhile; look whether that was meant"
        )
