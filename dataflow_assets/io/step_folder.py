"""One step's files: data, rejected and failed rows, and the commit records that make them exist."""

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import xxhash

from dataflow_assets.batch import content_hash, schema_of
from dataflow_assets.errors import CorruptFile, MissingBatch, StorageError
from dataflow_assets.io import atomic
from dataflow_assets.io.commit_record import CommitRecord, StoredFile
from dataflow_assets.io.formats import EXTENSIONS, Format, decode, encode_pieces
from dataflow_assets.io.names import key_to_name
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.samples import Samples
from dataflow_assets.io.storage import storage_of
from dataflow_assets.operators.operator import REJECT_REASON, Outcome

COMMITS = "_commits"
PROFILES = "_profiles"
PARTS = ("kept", "rejected", "failed")
# `datasets.load_dataset(folder)` would take the records and set-aside rows for data.
LOADER_FILE = ".huggingface.yaml"
_BATCH_FILE = re.compile(r"([a-z0-9_-]+_b[0-9]{5,}|all)\.[a-z]+")


_AHEAD = 32

Notes = Mapping[str, int | float | str]
NO_NOTES: Notes = {}


class Origin(NamedTuple):
    """Where a batch comes from: what a commit record says beside its files."""

    operator: str
    operator_version: str
    code_version: str
    fingerprint: str
    rows_in: int
    inputs: Mapping[str, str]
    started_at: float
    usage: Mapping[str, float] = {}
    counts: Mapping[str, int] = {}


class Prepared(NamedTuple):
    """A batch whose files are durable under temporary names, and the record to be written.

    `notes` is what else is told of the making of the batch, `samples` what is shown of its rows, where
    somebody looks at them; neither is kept.
    """

    record: CommitRecord
    paths: dict[str, Path]
    notes: Notes = NO_NOTES
    samples: Samples | None = None


@dataclass(frozen=True)
class StepFolder:
    """The files of one step below `path`.

    `path/<batch>.<ext>` holds the kept rows, `path/_rejected` and `path/_failed` the others,
    `path/_commits/<batch>.json` the record. With `whole` the kept rows of the single batch are
    the file `<path>.<ext>` beside the folder.
    """

    path: Path
    format: Format = "jsonl"
    whole: bool = False
    allow_pickle: bool = False

    def name_of(self, key: str, part: str = "kept") -> str:
        """What the file of a part of a batch is called, seen from the folder."""
        extension = EXTENSIONS[self.format]
        if part != "kept":
            return f"_{part}/{key_to_name(key)}.{extension}"
        if self.whole:
            return f"../{self.path.name}.{extension}"
        return f"{key_to_name(key)}.{extension}"

    def file_of(self, key: str, part: str = "kept") -> Path:
        """Where a part of a batch is stored."""
        return Path(os.path.normpath(self.path / self.name_of(key, part)))

    @property
    def commits(self) -> Path:
        """The folder of the records; it changes with each commit."""
        return self.path / COMMITS

    def record_file(self, key: str) -> Path:
        """Where the commit record of a batch is."""
        return self.path / COMMITS / f"{key_to_name(key)}.json"

    def record(self, key: str) -> CommitRecord | None:
        """The record of a batch whose files are all there as committed; None where there is none.

        A file whose size and time are those of the record is taken as it is; where only the time
        differs, its content is hashed. Raises StorageError where the record cannot be read.
        """
        record = read_record(f"{self.path}/{COMMITS}/{key_to_name(key)}.json")
        if record is None or record.batch != key:
            return None
        files = record.files.values()
        unchanged = all(is_as_stored(f"{self.path}/{stored.name}", stored) for stored in files)
        return record if unchanged else None

    def stored_path(self, stored: StoredFile) -> Path:
        """Where a file of a record is."""
        return Path(os.path.normpath(self.path / stored.name))

    def read(self, key: str, part: str = "kept", record: CommitRecord | None = None) -> pa.Table | None:
        """The rows of a part of a committed batch, checked against its record; None for no such part.

        Raises MissingBatch where the batch was never committed, CorruptFile where the file is not
        what was committed.
        """
        record = record or self.record(key)
        if record is None:
            raise MissingBatch(
                f"batch {key!r} of {self.path.name} is not committed in {place_of(self.path)}; materialize "
                "that step first"
            )
        stored = record.files.get(part)
        if stored is None:
            return None
        path = self.stored_path(stored)
        data = _bytes_of(path)
        if xxhash.xxh3_128_hexdigest(data) != stored.hash and not storage_of(path).is_local:
            path.unlink()  # a copy may be torn where its object is not
            data = _bytes_of(path)
        if xxhash.xxh3_128_hexdigest(data) != stored.hash:
            raise CorruptFile(
                f"{place_of(path)} is not what was committed (its hash differs from "
                f"{place_of(self.record_file(key))}); delete it and run again: the batch is then made anew"
            )
        return decode(data, record.format, stored.schema, allow_pickle=self.allow_pickle)

    def read_each(self, keys: Sequence[str]) -> Iterator[pa.Table]:
        """The kept rows of committed batches, one batch in memory at a time. Raises as `read` does.

        Objects that are not here yet are brought some batches ahead.
        """
        for key in self.brought(keys):
            table = self.read(key)
            assert table is not None
            yield table

    def brought(self, keys: Sequence[str], part: str = "kept") -> Iterator[str]:
        """The keys in turn, the files of some of them ahead brought here where they are elsewhere."""
        storage = storage_of(self.path)
        for start in range(0, len(keys), _AHEAD):
            some = keys[start : start + _AHEAD]
            storage.bring_all(str(self.file_of(key, part)) for key in some)
            yield from some

    def prepare(self, key: str, outcome: Outcome, origin: Origin) -> Prepared:
        """Encodes and writes a batch under temporary names, durable; may run in any thread.

        Raises StorageError, UnwritableValue.
        """
        tables = dict(zip(PARTS, outcome, strict=True))
        files, paths = {}, {}
        for part, table in tables.items():
            if table is None or (part != "kept" and not table.num_rows):
                continue
            path = self.file_of(key, part)
            atomic.make_folder(path.parent)
            written = atomic.write_temporary(path, encode_pieces(table, self.format))
            files[part] = StoredFile(
                self.name_of(key, part),
                table.num_rows,
                written.size,
                written.hash,
                0 if written.etag else written.mtime_ns,
                schema_of(table),
                written.etag,
            )
            paths[part] = path
        record = CommitRecord(
            batch=key,
            operator=origin.operator,
            operator_version=origin.operator_version,
            code_version=origin.code_version,
            fingerprint=origin.fingerprint,
            content_hash=content_hash(outcome.kept),
            format=self.format,
            files=files,
            rows_in=origin.rows_in,
            rows_out=outcome.kept.num_rows,
            rejected=counted(outcome.rejected, REJECT_REASON),
            failed=counted(outcome.failed, "error_class"),
            inputs=dict(origin.inputs),
            usage=dict(origin.usage),
            counts=dict(origin.counts),
            started_at=origin.started_at,
            seconds=round(time.time() - origin.started_at, 4),
        )
        return Prepared(record, paths)

    def commit(self, prepared: Prepared) -> CommitRecord:
        """Publishes a prepared batch: data files, then the record. Raises StorageError.

        Files of an earlier generation, or of one that a kill left without a record, which the new one
        does not replace are removed before the record is written, so that at every moment a record is
        true or its batch does not exist.
        """
        key = prepared.record.batch
        old = read_record(str(self.record_file(key)))
        folders = {path.parent for path in prepared.paths.values()}
        self.tell_loaders()
        atomic.make_folder(self.path / COMMITS)  # so that no source takes the files for data meanwhile
        for path in prepared.paths.values():
            atomic.publish(path)
        for path in self._files_of(key, old) - set(prepared.paths.values()):
            atomic.remove(path)
        for folder in sorted(folders):
            atomic.sync_folder(folder)
        record = replace(prepared.record, generation=old.generation + 1 if old else 1)
        atomic.write_atomically(self.record_file(key), record.to_bytes())
        return record

    def tell_loaders(self) -> None:
        """Says which files of the folder are the data set."""
        path = self.path / LOADER_FILE
        if self.whole:
            return
        files = f"*.{EXTENSIONS[self.format]}"
        config = f'configs:\n- config_name: default\n  data_files: "{files}"\n'.encode()
        if not path.is_file() or path.read_bytes() != config:
            atomic.write_atomically(path, config)

    def _files_of(self, key: str, record: CommitRecord | None) -> set[Path]:
        """Every place where the batch may have a file, whatever the format; no folder is listed."""
        named = {self.stored_path(stored) for stored in record.files.values()} if record else set()
        folders = [replace(self, format=format) for format in EXTENSIONS]
        return named | {folder.file_of(key, part) for folder in folders for part in PARTS}

    def transcode(self, key: str, record: CommitRecord) -> CommitRecord:
        """Stores a batch that was committed in another format in this folder's format.

        The rows, fingerprint and content hash stay, so that nothing downstream is done again; so does
        what the making of the batch took.
        """
        tables = [self.read(key, part, record) for part in PARTS]
        outcome = Outcome(*tables)  # pyright: ignore[reportArgumentType]
        origin = Origin(
            record.operator,
            record.operator_version,
            record.code_version,
            record.fingerprint,
            record.rows_in,
            record.inputs,
            record.started_at,
            record.usage,
            record.counts,
        )
        prepared = self.prepare(key, outcome, origin)
        return self.commit(prepared._replace(record=replace(prepared.record, seconds=record.seconds)))

    def remove(self, key: str) -> None:
        """Removes a batch: its record first, then its files. Raises StorageError."""
        record = read_record(str(self.record_file(key)))
        atomic.remove(self.record_file(key))
        atomic.remove(self.path / PROFILES / f"{key_to_name(key)}.profile")
        if record is not None:
            for stored in record.files.values():
                atomic.remove(self.stored_path(stored))

    def remove_all_but(self, keys: set[str]) -> list[str]:
        """Removes every batch that is not among `keys`, leftovers without a record included.

        Of the batches among `keys` the files that no record names go too. Files that are not named like a
        batch are not ours and stay. Returns the keys that were removed.
        """
        keys_by_name = {key_to_name(key): key for key in keys}
        foreign: list[Path] = []
        for path in self._stored_files():
            key = keys_by_name.get(path.name.split(".")[0])
            if key is None:
                foreign.append(path)
            elif self._is_leftover(path, key):
                atomic.remove(path)
        records = [read_record(str(path)) for path in foreign if path.parent.name == COMMITS]
        gone = sorted(record.batch for record in records if record is not None)
        for key in gone:
            self.remove(key)
        for path in foreign:
            atomic.remove(path)
        return gone

    def _is_leftover(self, path: Path, key: str) -> bool:
        """Whether no record names a file of rows, which is not where the folder stores what is kept."""
        if path.parent.name in (COMMITS, PROFILES) or path == self.file_of(key):
            return False
        record = read_record(str(self.record_file(key)))
        named = {self.stored_path(stored) for stored in record.files.values()} if record else set()
        return path.suffix[1:] in EXTENSIONS.values() and path not in named

    def _stored_files(self) -> list[Path]:
        folders = [
            self.path / COMMITS,
            self.path / PROFILES,
            self.path,
            *(self.path / f"_{part}" for part in PARTS[1:]),
        ]
        names = storage_of(self.path).names_in
        files = [folder / name for folder in folders if folder.is_dir() for name in names(folder)]
        return [path for path in files if _BATCH_FILE.fullmatch(path.name) and not path.is_dir()]


_parsed: dict[str, tuple[tuple[int, int, int], CommitRecord | None]] = {}
_MAX_PARSED = 50_000


def read_record(path: str) -> CommitRecord | None:
    """The record in this file, None where there is no whole one; parsed once for each version of it."""
    try:
        status = os.stat(path)
        version = (status.st_mtime_ns, status.st_ino, status.st_size)
        known = _parsed.get(path)
        if known is not None and known[0] == version:
            return known[1]
        record = CommitRecord.from_bytes(Path(path).read_bytes(), path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}; give permission") from error
    if len(_parsed) >= _MAX_PARSED:
        _parsed.clear()
    _parsed[path] = (version, record)
    return record


def _bytes_of(path: Path) -> bytes:
    """The file's content; of a copy that is not here it is brought. Raises StorageError."""
    storage_of(path).bring(str(path))
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{place_of(path)} cannot be read: {error.strerror}") from error


def is_as_stored(path: str, stored: StoredFile) -> bool:
    """Whether the file has the size and time of the record or, where only the time differs, its content.

    Of an object, size and ETag.
    """
    storage = storage_of(path)
    if not storage.is_local:
        kept = storage.is_kept(path, stored.size, stored.etag)
        if kept is not None:
            return kept
        storage.bring(path)
    try:
        status = os.stat(path)
    except OSError:
        return False
    if status.st_size != stored.size:
        return False
    return status.st_mtime_ns == stored.mtime_ns or _hash_of(path) == stored.hash


def _hash_of(path: str) -> str:
    digest = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def counted(table: pa.Table | None, column: str) -> dict[str, int]:
    """How many rows have each value of a text column, sorted by value."""
    if table is None or not table.num_rows:
        return {}
    counts = table[column].value_counts().to_pylist()
    return {entry["values"]: entry["counts"] for entry in sorted(counts, key=lambda entry: entry["values"])}
