"""Step 0: reads the source, cuts it into batches, gives each row its id, and writes the manifest."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    arrow_field,
    column_type,
    conform,
    content_hash,
    table_of,
    widen,
    widen_schema,
)
from dataflow_assets.control import StopFlag, look_again
from dataflow_assets.errors import SourceError
from dataflow_assets.io.batch_stream import Committed, Look, Ready, alone, as_wanted, commit_in_order
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.formats import Format, unfit_numbers
from dataflow_assets.io.layout import WHOLE_KEY, PipelineLayout
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.step_folder import Origin
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.sources.discovery import SourceFile, discover
from dataflow_assets.sources.manifest import FileState, Manifest, ReadFile
from dataflow_assets.sources.notes import notes
from dataflow_assets.sources.records import BadRecord, Chunk, read_chunks

OPERATOR = "source"
READER_VERSION = "1"
DOCUMENTS_VERSION = "2"
_REJECTED: Schema = {
    ROW_ID: "string",
    "file": "string",
    "line": "int64",
    "raw": "string",
    "reject_detail": "string",
    "reject_reason": "string",
}
_MaybeSchema = dict[str, ColumnType | None]


class _Cut(NamedTuple):
    """The rows and bad lines of one batch, before the columns of the whole source are known."""

    key: str
    slug: str
    chunks: list[Chunk]
    bad: list[BadRecord]
    name_column: str | None


def settings_hash(pipeline: Pipeline) -> str:
    """What decides the batches beside the files' content."""
    spec = pipeline.source.model_dump(mode="json", exclude={"path", "files"})
    spec["documents"] = DOCUMENTS_VERSION if pipeline.source.files is not None else False
    settings = [READER_VERSION, spec, pipeline.batch_rows, pipeline.batch_bytes, pipeline.format]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))


def read_manifest(pipeline: Pipeline, layout: PipelineLayout) -> Manifest | None:
    """The manifest of this pipeline and prefix, or None. Raises StorageError, RunError."""
    look_again(layout.folder)
    manifest = Manifest.read(layout.manifest_file)
    return manifest if manifest is not None and manifest.prefix == pipeline.prefix else None


def source_is_current(pipeline: Pipeline, layout: PipelineLayout) -> bool:
    """Whether step 0 holds exactly what the source holds now. Raises SourceError."""
    manifest = read_manifest(pipeline, layout)
    if manifest is None or manifest.settings != settings_hash(pipeline):
        return False
    files, _ = discover(pipeline.source, pipeline.base_dir)
    if [file.name for file in files] != [file.name for file in manifest.files]:
        return False
    read = {file.name: file for file in manifest.files}
    if not all(_is_unchanged(file, read[file.name]) for file in files):
        return False
    folder = layout.step(0)
    records = (folder.record(key) for key in manifest.batches)
    return all(record is not None and as_wanted(folder, record) is record for record in records)


def _is_unchanged(file: SourceFile, read: ReadFile) -> bool:
    paths = _paths(file)
    return (
        file.slug == read.slug
        and list(paths) == list(read.states)
        and all(read.states[name].is_still(path) for name, path in paths.items())
    )


def _paths(file: SourceFile) -> dict[str, Path]:
    """The files of a source by a name that another machine would give them too."""
    if not file.members:
        return {file.name: file.path}
    if file.names:
        return dict(zip(file.names, file.members, strict=True))
    return {os.path.relpath(member, file.path): member for member in file.members}


class SourceIngest:
    """The source as batches that come into being as they are pulled.

    Files that are as they were are not read again; of the others only the batches whose rows
    changed are written. A column's type is decided over the whole source, so that all batches
    have the same columns. At the end, `finish` is told the manifest, which is then written;
    batches that are no longer in it are removed from every step by the caller.
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
        self._read: list[ReadFile] = []
        self._schema: _MaybeSchema = {}
        self._workers = max(1, pipeline.workers or 2)
        self.notes: list[str] = []

    def commit_all(self, stop: StopFlag) -> Iterator[Committed]:
        """Commits the batches in order of the files. Raises SourceError, Stopped."""
        files, skipped = discover(self.pipeline.source, self.pipeline.base_dir)
        yield from commit_in_order(alone(self.folder, self._tasks(files)), self._workers, stop)
        rows = sum(file.rows for file in self._read)
        if not rows:
            raise SourceError(self._nothing_good(files))
        schema = final_schema(self._schema)
        tasks = self._conforming(files, schema)
        yield from commit_in_order(alone(self.folder, tasks), self._workers, stop)
        manifest = Manifest(
            self.pipeline.name,
            self.pipeline.prefix,
            settings_hash(self.pipeline),
            self._read,
            schema,
            skipped,
        )
        self.notes = notes(self._previous, manifest, self.pipeline.source)
        manifest.write(self.layout.manifest_file)
        self._finish(manifest)

    def _tasks(self, files: Sequence[SourceFile]) -> Iterator[Callable[[], Ready]]:
        if self.layout.whole:
            yield from self._whole_tasks(files)
            return
        for file in files:
            kept = self._unchanged(file)
            if kept is None:
                yield from self._file_tasks(file)
                continue
            self._note_read(kept)
            for key in kept.batches:
                record = self.folder.record(key)
                assert record is not None
                yield partial(as_wanted, self.folder, record)

    def _unchanged(self, file: SourceFile) -> ReadFile | None:
        """What was read of this file, where it and its batches are still as they were."""
        if self._previous is None or self._previous.settings != settings_hash(self.pipeline):
            return None
        read = next((old for old in self._previous.files if old.name == file.name), None)
        if read is None or not _is_unchanged(file, read):
            return None
        records = map(self.folder.record, read.batches)
        return read if all(record is not None for record in records) else None

    def _note_read(self, read: ReadFile) -> None:
        self._read.append(read)
        self._schema = widen_schema([self._schema, read.schema])

    def _file_tasks(self, file: SourceFile) -> Iterator[Callable[[], Ready]]:
        states = {name: FileState.of(path) for name, path in _paths(file).items()}
        keys: list[str] = []
        seen: _MaybeSchema = {}
        rows, rejected = 0, {}
        for cut in self._cuts(file, f"{file.slug}_b", len(keys)):
            keys.append(cut.key)
            seen = widen_schema([seen, *(_chunk_schema(chunk) for chunk in cut.chunks)])
            rows += sum(chunk.table.num_rows for chunk in cut.chunks)
            _count(rejected, cut.bad)
            self._schema = widen_schema([self._schema, seen])
            yield partial(self._ready, cut, dict(self._schema))
        _check_unchanged(file, states)
        self._read.append(ReadFile(file.name, file.slug, states, keys, seen, rows, rejected))

    def _whole_tasks(self, files: Sequence[SourceFile]) -> Iterator[Callable[[], Ready]]:
        """The whole source as one batch, as long as it is in memory at once."""
        kept = [self._unchanged(file) for file in files]
        record = self.folder.record(WHOLE_KEY)
        if record is not None and self._previous and len(files) == len(self._previous.files) and all(kept):
            for read in kept:
                assert read is not None
                self._note_read(read)
            yield partial(as_wanted, self.folder, record)
            return
        tables: list[pa.Table] = []
        bad: list[pa.Table] = []
        for file in files:
            states = {name: FileState.of(path) for name, path in _paths(file).items()}
            cuts = list(self._cuts(file, WHOLE_KEY, 0))
            seen = widen_schema(_chunk_schema(chunk) for cut in cuts for chunk in cut.chunks)
            self._schema = widen_schema([self._schema, seen])
            rejected: dict[str, int] = {}
            for cut in cuts:
                _count(rejected, cut.bad)
                tables += [_with_row_ids(chunk, cut) for chunk in cut.chunks]
                bad.append(_rejected_table(cut.slug, cut.bad))
            _check_unchanged(file, states)
            rows = sum(chunk.table.num_rows for cut in cuts for chunk in cut.chunks)
            keys = [WHOLE_KEY] if file is files[0] else []
            self._read.append(ReadFile(file.name, file.slug, states, keys, seen, rows, rejected))
        table = pa.concat_tables([conform(table, final_schema(self._schema)) for table in tables])
        yield partial(self._stored, WHOLE_KEY, table, pa.concat_tables(bad))

    def _cuts(self, file: SourceFile, stem: str, first: int) -> Iterator[_Cut]:
        """The file's rows in pieces of at most `batch_rows` rows and about `batch_bytes` bytes."""
        limit = self.pipeline.batch_rows
        number = first
        held: list[Chunk] = []
        rows = size = 0
        name_column = self.pipeline.source.rename.get("file", "file") if file.members else None

        def cut() -> _Cut:
            bad = [record for chunk in held for record in chunk.bad]
            key = f"{stem}{number:05d}" if limit else stem
            chunks = [chunk for chunk in held if chunk.table.num_rows]
            return _Cut(key, file.slug, chunks, bad, name_column)

        for chunk in read_chunks(file, self.pipeline.source):
            for piece in _pieces(_writable(chunk, file.name, self.pipeline.format), limit, rows):
                held.append(piece)
                rows += piece.table.num_rows
                size += piece.table.nbytes
                if limit and (rows >= limit or size >= self.pipeline.batch_bytes):
                    yield cut()
                    held, rows, size, number = [], 0, 0, number + 1
        if held and (rows or any(chunk.bad for chunk in held)):
            yield cut()

    def _ready(self, cut: _Cut, schema: _MaybeSchema) -> Ready:
        typed = final_schema(schema)
        tables = [conform(_with_row_ids(chunk, cut), typed) for chunk in cut.chunks]
        table = pa.concat_tables(tables) if tables else _empty(typed)
        return self._stored(cut.key, table, _rejected_table(cut.slug, cut.bad))

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

    def _conforming(self, files: Sequence[SourceFile], schema: Schema) -> Iterator[Callable[[], Ready]]:
        """Batches that were stored before a later row or file brought a new column or a wider type."""
        for index, read in enumerate(self._read):
            records = [self.folder.record(key) for key in read.batches]
            off = [record for record in records if record is not None and record.schema != schema]
            if not off:
                continue
            if all(_can_widen(record.schema, schema) for record in off):
                for record in off:
                    yield partial(self._rewritten, record, schema)
            else:
                yield from self._narrowed(files[index], schema)

    def _rewritten(self, record: CommitRecord, schema: Schema) -> Ready:
        table = self.folder.read(record.batch, record=record)
        rejected = self.folder.read(record.batch, "rejected", record)
        assert table is not None
        return self._stored(record.batch, conform(table, schema), rejected or _rejected_table("", []))

    def _narrowed(self, file: SourceFile, schema: Schema) -> Iterator[Callable[[], Ready]]:
        """An unchanged file whose columns were wider than needed, since another file went away."""
        for cut in self._cuts(file, f"{file.slug}_b", 0):
            yield partial(self._ready, cut, {name: kind for name, kind in schema.items() if name != ROW_ID})

    def _nothing_good(self, files: Sequence[SourceFile]) -> str:
        bad = {reason: 0 for read in self._read for reason in read.rejected}
        for read in self._read:
            for reason, count in read.rejected.items():
                bad[reason] += count
        names = ", ".join(file.name for file in files[:3])
        if not bad:
            return f"the source has no rows: {names} is empty; expected at least one row"
        counts = ", ".join(f"{count} x {reason}" for reason, count in bad.items())
        return (
            f"the source has no good row: every line of {names} was rejected ({counts}); see "
            f"{place_of(self.folder.path / '_rejected')} for the lines, or set source.format"
        )


def final_schema(schema: Mapping[str, ColumnType | None]) -> Schema:
    """The columns of step 0: `row_id` first; a column with nothing but nulls is a string column."""
    columns: Schema = {ROW_ID: "string"}
    for name, kind in schema.items():
        columns.setdefault(name, kind or "string")
    return columns


def _chunk_schema(chunk: Chunk) -> _MaybeSchema:
    return {
        field.name: None if pa.types.is_null(field.type) else column_type(field)
        for field in chunk.table.schema
    }


def _writable(chunk: Chunk, file: str, format: Format) -> Chunk:
    """The chunk without the rows that hold a number which the step files cannot: they are bad records."""
    fits = pa.chunked_array([pa.repeat(True, chunk.table.num_rows)])
    bad = list(chunk.bad)
    for unfit in unfit_numbers(chunk.table, format):
        for position in pc.indices_nonzero(pc.and_(unfit.rows, fits)).to_pylist():
            value = chunk.table[unfit.column][position].as_py()
            reason = f"number is not finite: column {unfit.column!r} holds {value}; {unfit.reason}"
            raw = str(chunk.table.slice(position, 1).to_pylist()[0])[:4096]
            bad.append(BadRecord(file, chunk.numbers[position].as_py(), reason, raw))
        fits = pc.and_(fits, pc.invert(unfit.rows))
    if len(bad) == len(chunk.bad):
        return chunk
    return chunk.filtered(fits.combine_chunks(), sorted(bad, key=lambda record: record.line))


def _with_row_ids(chunk: Chunk, cut: _Cut) -> pa.Table:
    """The rows with their `row_id`: `<source>:<record number>`.

    A row that is a whole file has the hash of its name instead, which another file does not change;
    a document brings ids of its own.
    """
    if chunk.row_ids is not None:
        return chunk.table.add_column(0, arrow_field(ROW_ID, "string"), chunk.row_ids)
    numbers = chunk.numbers.cast(pa.large_string())
    if cut.name_column in chunk.table.column_names:
        names = chunk.table[cut.name_column].to_pylist()
        numbers = pa.array([xxhash.xxh3_64_hexdigest(name.encode()) for name in names], pa.large_string())
    prefix = pa.scalar(cut.slug, pa.large_string())
    row_ids = pc.binary_join_element_wise(prefix, numbers, pa.scalar(":", pa.large_string()))
    return chunk.table.add_column(0, arrow_field(ROW_ID, "string"), row_ids)


def _empty(schema: Schema) -> pa.Table:
    return table_of({name: [] for name in schema}, schema)


def _rejected_table(slug: str, bad: Sequence[BadRecord]) -> pa.Table:
    """The lines that could not be read; the reason is its kind, the detail says more."""
    kinds = [record.reason.partition(":")[0].strip() for record in bad]
    columns = {
        ROW_ID: [f"{slug}:{record.line}" for record in bad],
        "file": [record.file for record in bad],
        "line": [record.line for record in bad],
        "raw": [record.raw for record in bad],
        "reject_detail": [record.reason for record in bad],
        "reject_reason": kinds,
    }
    return table_of(columns, _REJECTED)


def _count(counts: dict[str, int], bad: Sequence[BadRecord]) -> None:
    for record in bad:
        kind = record.reason.partition(":")[0].strip()
        counts[kind] = counts.get(kind, 0) + 1


def _pieces(chunk: Chunk, limit: int | None, held: int) -> Iterator[Chunk]:
    """The chunk cut where the batch of `limit` rows, of which `held` are there, gets full.

    A bad line goes with the rows before it, so that mending it touches one batch.
    """
    start, rows = 0, chunk.table.num_rows
    while limit and rows - start > limit - held:
        stop = start + limit - held
        last = chunk.numbers[stop].as_py()
        bad = [record for record in chunk.bad if record.line < last]
        yield chunk.sliced(start, stop - start, bad)
        chunk = chunk._replace(bad=[record for record in chunk.bad if record.line >= last])
        start, held = stop, 0
    yield chunk.sliced(start, None, chunk.bad)


def _can_widen(narrow: Schema, wide: Schema) -> bool:
    return all(name in wide and widen(kind, wide[name]) == wide[name] for name, kind in narrow.items())


def _check_unchanged(file: SourceFile, states: Mapping[str, FileState]) -> None:
    for name, path in _paths(file).items():
        if not states[name].is_still(path):
            changed = name if file.names else file.name
            raise SourceError(f"{changed} changed while it was read; run again when it is complete")
