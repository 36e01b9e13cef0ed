"""A file that grows by whole batches, and the journal beside it that says what is in it.

The journal of `rows.jsonl` is `rows.jsonl.journal`: JSON lines. The first says whose rows they are; then
one for each batch, durable before the first byte of the batch is written; and after each export one with
the size and time of the file. So a batch whose bytes are not all there is the last one, and is cut off;
a file that somebody else changed is seen by its time and the hashes of its batches.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson
import xxhash

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError, CorruptFile, PipelineBusy
from dataflow_assets.io.atomic import make_folder, storage_errors, sync_folder

JOURNAL_SUFFIX = ".journal"
_HASHED_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Appended:
    """A batch in the file: its bytes from `begin` to `end`, their hash, and what they were made of."""

    batch: str
    content_hash: str
    rows: int
    begin: int
    end: int
    hash: str
    columns: Schema


class GrowingFile:
    """The file, open and locked. `batches` has what is in it, in order."""

    def __init__(self, path: Path, descriptor: int, journal: int) -> None:
        self.path = path
        self.batches: list[Appended] = []
        self.torn: Appended | None = None
        self._file = descriptor
        self._journal = journal
        self._closed: tuple[int, int] | None = None

    @property
    def end(self) -> int:
        """Where the next batch begins."""
        return self.batches[-1].end if self.batches else 0

    def load(self, head: Mapping[str, object]) -> None:
        """Reads the journal, and checks the file against it; `torn` is then a batch that is not all there.

        Raises ConfigError where the file is of other rows, CorruptFile where it is not as it was left.
        """
        lines = self._journal_lines()
        if not lines:
            _refuse_unknown(self.path)
            self._note(dict(head))
            return
        if lines[0] != head:
            other = {name: value for name, value in lines[0].items() if head.get(name) != value}
            told = ", ".join(f"{name} {value!r}" for name, value in other.items())
            raise ConfigError(
                f"{self.path} was begun with {told}; append with the same choices, or to another file"
            )
        for line in lines[1:]:
            self._take(line)
        self._check()

    def _journal_lines(self) -> list[dict]:
        """The lines of the journal; one that a killed process did not finish is cut off."""
        data = _bytes_of(self._journal, 0, os.fstat(self._journal).st_size)
        whole = data.rpartition(b"\n")[0] + b"\n" if b"\n" in data else b""
        if len(whole) < len(data):
            with storage_errors(self.path):
                os.ftruncate(self._journal, len(whole))
        try:
            return [orjson.loads(line) for line in whole.splitlines()]
        except orjson.JSONDecodeError as error:
            raise self._changed(f"its journal {self.path.name}{JOURNAL_SUFFIX} is damaged") from error

    def _take(self, line: dict) -> None:
        if "size" in line:
            self._closed = (line["size"], line["mtime_ns"])
            return
        if "begin" not in line:
            self._renew(line["batch"], line["content_hash"])
            return
        batch = Appended(**line)
        while self.end > batch.begin:  # what was cut off, and written again
            self.batches.pop()
        self.batches.append(batch)
        self._closed = None

    def _check(self) -> None:
        status = os.fstat(self._file)
        if self._closed == (status.st_size, status.st_mtime_ns):
            return
        if status.st_size > self.end:
            raise self._changed(f"it has {status.st_size - self.end:,} bytes more than were written")
        if self.batches and not self._is_there(self.batches[-1]) and self._closed is None:
            self.torn = self.batches.pop()
        if status.st_size < self.end:
            raise self._changed(f"it has {self.end - status.st_size:,} bytes less than were written")
        for batch in self.batches:
            if not self._is_there(batch):
                raise self._changed(f"bytes {batch.begin:,} to {batch.end:,} are not batch {batch.batch!r}")

    def _is_there(self, batch: Appended) -> bool:
        digest = xxhash.xxh3_128()
        for begin in range(batch.begin, batch.end, _HASHED_AT_ONCE):
            digest.update(_bytes_of(self._file, begin, min(batch.end, begin + _HASHED_AT_ONCE)))
        return digest.hexdigest() == batch.hash

    def _changed(self, how: str) -> CorruptFile:
        return CorruptFile(
            f"{self.path} was changed by somebody else: {how}; put it back as it was, or move it and its "
            "journal away and export all again"
        )

    def bytes_of(self, batch: Appended) -> bytes:
        """The bytes of a batch in the file."""
        return _bytes_of(self._file, batch.begin, batch.end)

    def renew(self, batch: Appended, content_hash: str) -> None:
        """Notes that the step has a batch of another hash now, whose rows are those in the file."""
        self._note({"batch": batch.batch, "content_hash": content_hash})
        self._renew(batch.batch, content_hash)

    def _renew(self, key: str, content_hash: str) -> None:
        self.batches = [
            replace(batch, content_hash=content_hash) if batch.batch == key else batch
            for batch in self.batches
        ]

    def cut_torn(self, data: bytes | None) -> None:
        """Cuts off the batch that is not all there; `data` is what it was to be, where that is still known.

        Raises CorruptFile where something else stands there.
        """
        assert self.torn is not None
        found = _bytes_of(self._file, self.torn.begin, os.fstat(self._file).st_size)
        if data is not None and not data.startswith(found.rstrip(b"\0")):
            raise self._changed(f"from byte {self.torn.begin:,} on it is not batch {self.torn.batch!r}")
        with storage_errors(self.path):
            os.ftruncate(self._file, self.torn.begin)
        self.torn = None

    def append(self, batch: str, content_hash: str, rows: int, columns: Schema, data: bytes) -> None:
        """Writes a batch behind the others; durable when this returns. Raises StorageError."""
        begin = self.end
        digest = xxhash.xxh3_128_hexdigest(data)
        appended = Appended(batch, content_hash, rows, begin, begin + len(data), digest, columns)
        self._note(asdict(appended))
        self._write(begin, data)
        self.batches.append(appended)
        self._closed = None

    def close(self) -> None:
        """Notes the file as it is now, so that the next export need not read it."""
        status = os.fstat(self._file)
        if self._closed != (status.st_size, status.st_mtime_ns):
            self._note({"size": status.st_size, "mtime_ns": status.st_mtime_ns})

    def _note(self, line: Mapping[str, object]) -> None:
        with storage_errors(self.path):
            _write_all(self._journal, orjson.dumps(line) + b"\n", os.fstat(self._journal).st_size)

    def _write(self, begin: int, data: bytes) -> None:
        with storage_errors(self.path):
            _write_all(self._file, data, begin)


@contextlib.contextmanager
def growing_file(path: Path) -> Iterator[GrowingFile]:
    """The file and its journal, made where they are missing, for this process alone.

    Of a link it is the file that it leads to. Raises PipelineBusy while another process appends to it,
    StorageError where it cannot be opened.
    """
    path = path.resolve()
    make_folder(path.parent)
    journal_path = path.with_name(path.name + JOURNAL_SUFFIX)
    if not journal_path.exists():
        _refuse_unknown(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as stack:
        with storage_errors(journal_path):
            journal = os.open(journal_path, flags, 0o666)
        stack.callback(os.close, journal)
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PipelineBusy(f"another process appends to {path}; wait for it") from error
        with storage_errors(path):
            file = os.open(path, flags, 0o666)
        stack.callback(os.close, file)
        sync_folder(path.parent)
        yield GrowingFile(path, file, journal)


def _refuse_unknown(path: Path) -> None:
    """Raises ConfigError where there are rows of which no journal tells."""
    if path.is_file() and path.stat().st_size:
        raise ConfigError(
            f"{path} is there and has no journal {path.name}{JOURNAL_SUFFIX}, so that nobody knows what is "
            "in it; move it away, or append to another file"
        )


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written
    os.fsync(descriptor)


def _bytes_of(descriptor: int, begin: int, end: int) -> bytes:
    """The bytes from one place to another, fewer where the file ends before."""
    pieces = []
    while begin < end and (piece := os.pread(descriptor, end - begin, begin)):
        pieces.append(piece)
        begin += len(piece)
    return b"".join(pieces)
