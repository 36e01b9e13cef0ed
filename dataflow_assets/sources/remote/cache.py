"""Local copies of remote files: fetched once for each version, bounded in bytes, shared by all runs."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import orjson
import xxhash

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.io.atomic import make_folder, storage_errors
from dataflow_assets.sources.remote.attempts import all_blocks, repeated
from dataflow_assets.sources.remote.store import RemoteFile, Store
from dataflow_assets.sources.remote.urls import file_name

FOLDER_VARIABLE = "DATAFLOW_SOURCE_CACHE"
BYTES_VARIABLE = "DATAFLOW_SOURCE_CACHE_BYTES"
_DEFAULT_BYTES = 20 * 2**30
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def cache_folder() -> Path:
    """DATAFLOW_SOURCE_CACHE, else a folder of the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named or f"{home}/dataflow_assets/sources").expanduser()


def _max_bytes() -> int:
    named = os.environ.get(BYTES_VARIABLE, str(_DEFAULT_BYTES))
    if not (named.isascii() and named.isdecimal()):
        raise ConfigError(f"{BYTES_VARIABLE} is {named!r}; expected a number of bytes")
    return int(named)


@contextmanager
def local_copy(store: Store, file: RemoteFile) -> Iterator[Path]:
    """The path of a whole copy of this version, which stays while it is used.

    Fetches it where it is not there. Afterwards the copies that were not used for longest are removed
    until the others fit. Raises SourceError, StorageError.
    """
    folder = cache_folder()
    make_folder(folder)
    version = [file.name, file.url.partition("?")[2], dict(file.facts)]
    key = xxhash.xxh3_128_hexdigest(orjson.dumps(version, option=orjson.OPT_SORT_KEYS))
    place = folder / key / (_UNSAFE.sub("_", file_name(file.name))[-100:] or "file")
    try:
        with _locked(folder / f"{key}.lock") as lock:
            if not (place.is_file() and file.certain):
                _fetch(store, file, place)
            with storage_errors(place):
                os.utime(place)
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield place
    finally:
        _trim(folder, _max_bytes(), key if not file.certain else None)


def _fetch(store: Store, file: RemoteFile, place: Path) -> None:
    make_folder(place.parent)
    part = place.with_name(f".{place.name}.part")
    with open(part, "wb") as stream:
        for block in all_blocks(store, file):
            with storage_errors(part):
                if block is None:
                    stream.seek(0)
                    stream.truncate()
                else:
                    stream.write(block)
    if repeated(lambda: store.looked_at(file)).facts != file.facts:
        part.unlink(missing_ok=True)
        raise SourceError(f"{file.name} changed while it was read; run again when it is complete")
    with storage_errors(place):
        part.replace(place)


@contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    """Holds the copy for this process alone, or with others once the lock is made a shared one."""
    while True:
        with storage_errors(path):
            lock = open(path, "a+", encoding="utf-8")  # noqa: SIM115  closed below
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_there(lock, path):
                yield lock
                return
        finally:
            lock.close()


def _is_there(lock: IO[str], path: Path) -> bool:
    """Whether the file that is locked is still the one of this name, and was not removed meanwhile."""
    try:
        return os.fstat(lock.fileno()).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _trim(folder: Path, max_bytes: int, unwanted: str | None) -> None:
    """Removes the copies that nobody uses, those used longest ago first, until the others fit."""
    found = []
    for place in folder.glob("*/*"):
        with suppress(OSError):
            status = place.stat()
            found.append((place.parent.name != unwanted, status.st_mtime, status.st_size, place.parent))
    total = sum(size for _, _, size, _ in found)
    for wanted, _, size, parent in sorted(found):
        if wanted and total <= max_bytes:
            return
        if _removed(parent):
            total -= size


def _removed(copy: Path) -> bool:
    lock_file = copy.with_name(f"{copy.name}.lock")
    with suppress(OSError), open(lock_file, "a+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(copy)
        lock_file.unlink()
        return True
    return False
