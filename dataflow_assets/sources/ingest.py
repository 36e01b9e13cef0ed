"""Step 0: reads the source, commits its batches, and writes the manifest."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import pyarrow as pa

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    conform,
    content_hash,
    same_columns,
    widen,
    widen_schema,
)
from dataflow_assets.control import StopFlag
from dataflow_assets.errors import SourceError, StorageError
from dataflow_assets.io.atomic import make_folder, remove
from dataflow_assets.io.batch_stream import Committed, Look, Ready, alone, as_wanted, commit_in_order
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.layout import WHOLE_KEY, PipelineLayout
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.step_folder import Origin
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.sources.columns import types_of
from dataflow_assets.sources.current import (
    READER_VERSION,
    is_as_read,
    known_before,
    read_manifest,
    records_as_read,
    settings_hash,
)
from dataflow_assets.sources.cutting import Cut, cuts_of, final_schema, rejected_table
from dataflow_assets.sources.manifest import Manifest, ReadFile
from dataflow_assets.sources.notes import notes
from dataflow_assets.sources.opening import find_pieces
from dataflow_assets.sources.piece import Piece

OPERATOR = "source"
_NOTE_EVERY_S = 2.0
_MaybeSchema = dict[str, ColumnType | None]


class SourceIngest:
    """The source as batches that come into being as they are pulled.

    Pieces that are as they were are not read again; of the others only the batches whose rows
    changed are written. A column's type is decided over the whole source, so that all batches
    have the same columns. At the end, `finish` is told the manifest, which is then written;
    batches that are no longer in it are removed from every step by the caller. Which pieces are done
    is noted meanwhile, so that a reading that was interrupted goes on after them.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        layout: PipelineLayout,
        finish: Callable[[Manifest], None],
        reuse: bool = True,
        look: Look | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.layout = layout
        self.folder = layout.step(0)
        self._finish = finish
        self._look = look
        self._previous = read_manifest(pipeline, layout) if reuse else None
        self._before = self._read_before() if reuse else {}
        self._read: list[ReadFile] = []
        self._pins: dict[str, str] = {}
        self._fingerprints: dict[str, str] = {}
        self._noted_at = time.monotonic()
        self._schema: _MaybeSchema = {}
        self._workers = max(1, pipeline.workers or 2)
        self.notes: list[str] = []

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Commits the batches in order of the pieces. Raises SourceError, Stopped."""
        known = known_before(self.pipeline, self.layout)
        found = find_pieces(self.pipeline.source, self.pipeline.base_dir, known)
        self._pins = dict(found.pins)
        with self._progress_kept():
            yield from self._committed(self._tasks(found.pieces), stop)
        if not sum(piece.rows for piece in self._read):
            raise SourceError(self._nothing_good(found.pieces))
        schema = final_schema(self._schema)
        conforming = self._committed(self._conforming(found.pieces, schema), stop)
        yield from (committed._replace(again=True) for committed in conforming)
        manifest = self._manifest(self._read, schema, found.skipped)
        self.notes = notes(self._previous, manifest, self.pipeline.source)
        manifest.write(self.layout.manifest_file)
        remove(self.layout.reading_file)
        self._finish(manifest)

    def _committed(self, tasks: Iterator[Callable[[], Ready]], stop: StopFlag) -> Iterator[Committed]:
        for committed in commit_in_order(alone(self.folder, tasks), self._workers, stop):
            self._fingerprints[committed.record.batch] = committed.record.fingerprint
            yield committed

    def _manifest(self, read: list[ReadFile], schema: Schema, skipped: list[str]) -> Manifest:
        name, prefix = self.pipeline.name, self.pipeline.prefix
        files = [
            replace(file, batches={key: self._fingerprints[key] for key in file.batches}) for file in read
        ]
        return Manifest(name, prefix, settings_hash(self.pipeline), files, schema, skipped, self._pins)

    def _read_before(self) -> dict[str, list[ReadFile]]:
        """What was read of each piece with the same settings, the interrupted reading first."""
        manifests = [Manifest.read(self.layout.reading_file), self._previous]
        settings, before = settings_hash(self.pipeline), {}
        for manifest in manifests:
            if manifest is not None and (manifest.prefix, manifest.settings) == (
                self.pipeline.prefix,
                settings,
            ):
                for file in manifest.files:
                    before.setdefault(file.name, []).append(file)
        return before

    @contextmanager
    def _progress_kept(self) -> Iterator[None]:
        """Notes which pieces are done when the reading ends early."""
        try:
            yield
        except BaseException:
            if self._read or self._pins:
                with suppress(StorageError):  # what ended the reading is told, not this
                    self._note_progress()
            raise

    def _note_progress(self) -> None:
        done = [read for read in self._read if self._fingerprints.keys() >= read.batches.keys()]
        make_folder(self.layout.folder)
        self._manifest(done, {}, []).write(self.layout.reading_file)
        self._noted_at = time.monotonic()

    def _tasks(self, pieces: Sequence[Piece]) -> Iterator[Callable[[], Ready]]:
        if self.layout.whole:
            yield from self._whole_tasks(pieces)
            return
        if self._pins:
            self._note_progress()
        for piece in pieces:
            kept = self._unchanged(piece)
            if kept is None:
                yield from self._piece_tasks(piece)
            else:
                self._note_read(kept)
                yield from map(self._kept, kept.batches)
            if time.monotonic() - self._noted_at > _NOTE_EVERY_S:
                self._note_progress()

    def _kept(self, key: str) -> Callable[[], Ready]:
        record = self.folder.record(key)
        assert record is not None
        return partial(as_wanted, self.folder, record)

    def _unchanged(self, piece: Piece) -> ReadFile | None:
        """What was read of this piece, where it and its batches are still as they were."""
        for read in self._before.get(piece.name, []):
            if is_as_read(piece, read) and records_as_read(self.folder, read) is not None:
                return read
        return None

    def _note_read(self, read: ReadFile) -> None:
        self._read.append(read)
        self._schema = widen_schema([self._schema, read.schema])

    def _piece_tasks(self, piece: Piece) -> Iterator[Callable[[], Ready]]:
        states = piece.states()
        keys: list[str] = []
        seen: _MaybeSchema = {}
        rows, rejected = 0, {}
        for cut in cuts_of(piece, self.pipeline, f"{piece.slug}_b"):
            keys.append(cut.key)
            seen = widen_schema([seen, _schema_of([cut])])
            rows += cut.rows
            cut.count_bad(rejected)
            self._schema = widen_schema([self._schema, seen])
            yield partial(self._ready, cut, dict(self._schema))
        piece.check_same(states)
        batches = dict.fromkeys(keys, "")  # their fingerprints are known when they are committed
        self._read.append(ReadFile(piece.name, piece.slug, states, batches, seen, rows, rejected))

    def _whole_tasks(self, pieces: Sequence[Piece]) -> Iterator[Callable[[], Ready]]:
        """The whole source as one batch, as long as it is in memory at once."""
        kept = [self._unchanged(piece) for piece in pieces]
        record = self.folder.record(WHOLE_KEY)
        if record is not None and self._previous and len(pieces) == len(self._previous.files) and all(kept):
            for read in kept:
                assert read is not None
                self._note_read(read)
            yield partial(as_wanted, self.folder, record)
            return
        tables: list[pa.Table] = []
        bad: list[pa.Table] = []
        for piece in pieces:
            states = piece.states()
            cuts = list(cuts_of(piece, self.pipeline, WHOLE_KEY))
            seen = _schema_of(cuts)
            self._schema = widen_schema([self._schema, seen])
            rejected: dict[str, int] = {}
            for cut in cuts:
                cut.count_bad(rejected)
                tables += cut.tables()
                bad.append(cut.rejected())
            piece.check_same(states)
            rows = sum(cut.rows for cut in cuts)
            batches = {WHOLE_KEY: ""} if piece is pieces[0] else {}
            self._read.append(ReadFile(piece.name, piece.slug, states, batches, seen, rows, rejected))
        table = pa.concat_tables([conform(table, final_schema(self._schema)) for table in tables])
        yield partial(self._stored, WHOLE_KEY, table, pa.concat_tables(bad))

    def _ready(self, cut: Cut, schema: _MaybeSchema) -> Ready:
        return self._stored(cut.key, cut.table(final_schema(schema)), cut.rejected())

    def _stored(self, key: str, table: pa.Table, rejected: pa.Table) -> Ready:
        started = time.time()
        fingerprint = f"{content_hash(table)}-{content_hash(rejected)}"
        record = self.folder.record(key)
        if record is not None and record.fingerprint == fingerprint:
            return as_wanted(self.folder, record)
        rows = table.num_rows + rejected.num_rows
        origin = Origin(OPERATOR, READER_VERSION, READER_VERSION, fingerprint, rows, {}, started)
        prepared = self.folder.prepare(key, Outcome(table, rejected), origin)
        if self._look is None:
            return prepared
        return prepared._replace(notes=self._look(self.folder, key, table, prepared.record.content_hash))

    def _conforming(self, pieces: Sequence[Piece], schema: Schema) -> Iterator[Callable[[], Ready]]:
        """Batches that were stored before a row or piece brought a new column, wider type or other order."""
        for index, read in enumerate(self._read):
            records = [self.folder.record(key) for key in read.batches]
            off = [
                record for record in records if record is not None and not same_columns(record.schema, schema)
            ]
            if not off:
                continue
            if all(_can_widen(record.schema, schema) for record in off):
                for record in off:
                    yield partial(self._rewritten, record, schema)
            else:
                yield from self._narrowed(pieces[index], schema)

    def _rewritten(self, record: CommitRecord, schema: Schema) -> Ready:
        table = self.folder.read(record.batch, record=record)
        rejected = self.folder.read(record.batch, "rejected", record)
        assert table is not None
        return self._stored(record.batch, conform(table, schema), rejected or rejected_table("", []))

    def _narrowed(self, piece: Piece, schema: Schema) -> Iterator[Callable[[], Ready]]:
        """An unchanged piece whose columns were wider than needed, since another piece went away."""
        for cut in cuts_of(piece, self.pipeline, f"{piece.slug}_b"):
            yield partial(self._ready, cut, {name: kind for name, kind in schema.items() if name != ROW_ID})

    def _nothing_good(self, pieces: Sequence[Piece]) -> str:
        bad = {reason: 0 for read in self._read for reason in read.rejected}
        for read in self._read:
            for reason, count in read.rejected.items():
                bad[reason] += count
        names = ", ".join(piece.name for piece in pieces[:3])
        if not bad:
            return f"the source has no rows: {names} is empty; expected at least one row"
        counts = ", ".join(f"{count} x {reason}" for reason, count in bad.items())
        return (
            f"the source has no good row: every line of {names} was rejected ({counts}); see "
            f"{place_of(self.folder.path / '_rejected')} for the lines, or set source.format"
        )


def _schema_of(cuts: Iterable[Cut]) -> _MaybeSchema:
    return widen_schema(types_of(chunk.table) for cut in cuts for chunk in cut.chunks)


def _can_widen(narrow: Schema, wide: Schema) -> bool:
    return all(name in wide and widen(kind, wide[name]) == wide[name] for name, kind in narrow.items())
