"""How a piece of a source looked when it was read: what tells later that it is the same."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import xxhash

from dataflow_assets.errors import SourceError

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
class VersionState:
    """How a piece that is no local file looked: `facts` (revision, ETag, range, …) and their `hash`.

    `size` is its bytes, 0 where nobody knows. Facts are JSON values, and none of them is secret.
    """

    hash: str
    size: int = 0
    facts: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Mapping[str, object], size: int = 0) -> "VersionState":
        """The state that these facts make; they differ exactly where the piece does."""
        return cls(
            xxhash.xxh3_128_hexdigest(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)), size, dict(facts)
        )


State = FileState | VersionState


def state_of(entry: dict) -> State:
    """The state that was stored as this JSON object."""
    return VersionState(**entry) if "facts" in entry else FileState(**entry)
