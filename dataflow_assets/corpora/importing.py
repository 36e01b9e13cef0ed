"""Imports a source into a data set: piece by piece, a transaction a chunk, killed and gone on with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from sqlalchemy import Connection

from dataflow_assets.control import StopFlag
from dataflow_assets.corpora.cursors import (
    Cursor,
    TaskKey,
    advance_cursor,
    begin_cursor,
    find_cursor,
)
from dataflow_assets.corpora.lease import task_lease
from dataflow_assets.corpora.shapes import Shape, left_beside
from dataflow_assets.corpora.store import Corpora, Dataset, Put
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.cutting import Cut
from dataflow_assets.sources.opening import find_pieces
from dataflow_assets.sources.piece import NOTHING_KNOWN, Piece
from dataflow_assets.sources.reading_spec import ReadingSpec
from dataflow_assets.sources.records import peek_schema, read_chunks

TYPE = "import"
_MOST_ROWS = 1000


class Imported(NamedTuple):
    """What an import did: pieces that were read and passed over, what was put, bad records by reason.

    `missing` and `beside` are as in `left_beside`.
    """

    read: int
    passed_over: int
    put: Put
    bad: Mapping[str, int]
    missing: Sequence[str]
    beside: Sequence[str]


def import_source(
    corpora: Corpora,
    name: str,
    spec: ReadingSpec,
    base_dir: Path,
    stop: StopFlag,
    shape: Shape | None = None,
    replace: bool = False,
) -> Imported:
    """Puts the rows of a source into the data set of this name, which is made where it is not there.

    A piece (a file, for example) that was imported whole is passed over, one that was begun is gone on
    with. Raises ConfigError where another piece of the same name was imported, unless it may `replace`
    that; SourceError, CorpusError; TaskBusy; Stopped between two chunks.
    """
    pieces = find_pieces(spec, base_dir, NOTHING_KNOWN).pieces
    columns = list(peek_schema(pieces, spec))
    dataset = corpora.dataset_for(name, shape, columns)
    counts = {True: 0, False: 0}
    put, bad = Put(), dict[str, int]()
    for piece in pieces:
        fingerprint = hash_of([type(piece).__name__, {k: s.hash for k, s in piece.states().items()}])
        with task_lease(corpora.database, f"import {name}/{piece.slug}"[:190]) as connection:
            key = TaskKey(piece.slug, "main", TYPE, dataset.id)
            cursor = corpora.database.write(
                lambda on, key=key, piece=piece, fingerprint=fingerprint: _begun(
                    on, key, piece, fingerprint, replace
                ),
                connection,
            )
            counts[cursor.is_done] += 1
            if not cursor.is_done:
                put = put.plus(_import(corpora, dataset, piece, spec, cursor, connection, stop, bad))
    return Imported(counts[False], counts[True], put, bad, *left_beside(dataset.shape, columns))


def _begun(connection: Connection, key: TaskKey, piece: Piece, fingerprint: str, replace: bool) -> Cursor:
    cursor = find_cursor(connection, key)
    if cursor is None or (replace and (cursor.is_done or cursor.fingerprint != fingerprint)):
        return begin_cursor(connection, key, fingerprint, last_key=2**62)
    if cursor.fingerprint != fingerprint:
        raise ConfigError(
            f"{key.task!r} was imported into this data set before, and {piece.name} is another now. If that "
            "was an earlier state of this file, --replace puts its rows in the place of those with the same "
            "numbers; if it was another file of this name, --replace would lose its rows: rename this one to "
            "keep both, or name another data set"
        )
    return cursor


def _import(
    corpora: Corpora,
    dataset: Dataset,
    piece: Piece,
    spec: ReadingSpec,
    cursor: Cursor,
    connection: Connection,
    stop: StopFlag,
    bad: dict[str, int],
) -> Put:
    """The rows of the piece behind the cursor."""
    states = piece.states()
    done = Put()
    for chunk in read_chunks(piece, spec):
        _count(chunk, piece, cursor.offset_key, bad)
        for rows in _new_rows(chunk, piece, cursor.offset_key):
            stop.raise_if_up()
            put, cursor = _put(corpora, dataset, rows, cursor, connection)
            done = done.plus(put)
    piece.check_same(states)
    if not done.new + done.replaced + done.unchanged + cursor.processed:
        raise SourceError(f"{piece.name} has no good row; expected at least one conversation")
    corpora.database.write(lambda on: advance_cursor(on, cursor, is_done=True), connection)
    return done


class _Rows(NamedTuple):
    table: pa.Table
    last: int


def _put(
    corpora: Corpora, dataset: Dataset, rows: _Rows, cursor: Cursor, connection: Connection
) -> tuple[Put, Cursor]:
    count = cursor.processed + rows.table.num_rows
    moved: list[Cursor] = []

    def move(on: Connection) -> None:
        moved[:] = [advance_cursor(on, cursor, offset_key=rows.last, processed=count, changed=count)]

    put = corpora.put(dataset, rows.table, connection, move)
    return put, moved[0]


def _new_rows(chunk: Chunk, piece: Piece, offset: int) -> list[_Rows]:
    """The rows of a chunk behind that number, with their ids, in tables of at most 1,000 rows."""
    table = Cut("", piece.slug, [chunk], [], piece.name_column).tables()[0] if chunk.table.num_rows else None
    numbers = chunk.numbers.to_pylist()
    start = next((place for place, number in enumerate(numbers) if number > offset), len(numbers))
    if table is None:
        return []
    places = range(start, len(numbers), _MOST_ROWS)
    return [
        _Rows(table.slice(place, _MOST_ROWS), numbers[min(place + _MOST_ROWS, len(numbers)) - 1])
        for place in places
    ]


def _count(chunk: Chunk, piece: Piece, offset: int, bad: dict[str, int]) -> None:
    Cut("", piece.slug, [], [one for one in chunk.bad if one.line > offset], None).count_bad(bad)
