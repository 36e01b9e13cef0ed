"""The manifest: what was read, file by file, and which batches it became."""

import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson
import xxhash

from dataflow_assets.batch import ColumnType, Schema
from dataflow_assets.errors import RunError, SourceError, StorageError
from dataflow_assets.io.atomic import write_atomically

MANIFEST_VERSION = 1
_CLOCK_TICK_NS = 2_000_000_000


@dataclass(frozen=True)
class FileState:
    """How a file looked when it was read: enough to tell later, mostly without reading, that it is the same.

    `hash` is the 128-bit hash of its bytes. `inode`, `mtime_ns` and `ctime_ns` belong to this
    machine: where they differ, the hash decides. `looked_at_ns` is when they were read: a file that
    changed shortly before could change again within the same tick of its clock.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    looked_at_ns: int
    hash: str

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """The state of a file now; reads all of it. Raises SourceError."""
        try:
            digest = xxhash.xxh3_128()
            with open(path, "rb") as file:
                while block := file.read(1 << 22):
                    digest.update(block)
                status = os.fstat(file.fileno())
        except OSError as error:
            raise SourceError(
                f"{path} cannot be read: {error.strerror}; give permission or correct the path"
            ) from error
        return cls(
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            time.time_ns(),
            digest.hexdigest(),
        )

    def is_still(self, path: Path) -> bool:
        """Whether the file is the same. Reads it only where its size, times and inode do not tell."""
        try:
            status = path.stat()
        except OSError:
            return False
        if status.st_size != self.size:
            return False
        now = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        settled = self.looked_at_ns - status.st_ctime_ns > _CLOCK_TICK_NS
        if settled and now == (self.mtime_ns, self.ctime_ns, self.inode):
            return True
        return FileState.of(path).hash == self.hash


@dataclass(frozen=True)
class ReadFile:
    """One source (a file, or a folder of one-row files), its batches and the columns it brought.

    A column type of None is a column that held nothing but nulls.
    """

    name: str
    slug: str
    states: dict[str, FileState]
    batches: list[str]
    schema: dict[str, ColumnType | None]
    rows: int
    rejected: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """What a pipeline read: `settings` is the hash of everything else that decides the batches."""

    pipeline: str
    prefix: str
    settings: str
    files: list[ReadFile]
    schema: Schema
    skipped: list[str] = field(default_factory=list)

    @property
    def batches(self) -> list[str]:
        """All batch keys in partition order."""
        return [key for file in self.files for key in file.batches]

    @property
    def rows(self) -> int:
        """Good rows over all files."""
        return sum(file.rows for file in self.files)

    def write(self, path: Path) -> None:
        """Stores the manifest whole or not at all. Raises StorageError."""
        body = {"version": MANIFEST_VERSION, **asdict(self)}
        write_atomically(
            path, orjson.dumps({**body, "checksum": _checksum(body)}, option=orjson.OPT_INDENT_2)
        )

    @classmethod
    def read(cls, path: Path) -> "Manifest | None":
        """The stored manifest, or None where there is no whole one: then the source is read again.

        Raises StorageError where it cannot be read, RunError for one of a newer version.
        """
        try:
            body = orjson.loads(path.read_bytes())
            checksum, version = body.pop("checksum"), body["version"]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}; give permission") from error
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            return None
        if isinstance(version, int) and version > MANIFEST_VERSION:
            raise RunError(
                f"{path} was written by a newer dataflow_assets (version {version}, this one reads up to "
                f"{MANIFEST_VERSION}); upgrade this installation or use another root"
            )
        if checksum != _checksum(body):
            return None
        del body["version"]
        body["files"] = [_file(entry) for entry in body["files"]]
        return cls(**body)


def _file(entry: dict) -> ReadFile:
    states = {name: FileState(**state) for name, state in entry.pop("states").items()}
    return ReadFile(states=states, **entry)


def _checksum(body: dict) -> str:
    return xxhash.xxh3_64_hexdigest(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
