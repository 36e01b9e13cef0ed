"""Writes that are there whole or not at all: temporary name, fsync, rename, fsync of the folder.

On an object store nothing is renamed: see `objects.copies`.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import xxhash

from dataflow_assets.errors import ConfigError, StorageError
from dataflow_assets.io.storage import storage_of

TEMPORARY_SUFFIX = ".tmp"
# Of URLs, as a `Path` has them.
_SCHEMES = {
    *("abfs:", "abfss:", "az:", "file:", "ftp:", "gcs:", "gs:", "hdfs:", "hf:", "http:", "https:", "oss:"),
    *("s3:", "s3a:", "sftp:"),
}


class Written(NamedTuple):
    """A file that is durable under its temporary name: where it will be, and what it holds.

    `etag` is that of the object, where it is in an object store.
    """

    path: Path
    size: int
    hash: str
    mtime_ns: int
    etag: str = ""


def temporary(path: Path) -> Path:
    """The hidden name under which a file is written before it gets its own."""
    return path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turns an OSError into a StorageError that names the path and what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}; make room or give permission, then run "
            "the same command again: what was committed is kept"
        ) from error


def write_temporary(path: Path, pieces: Iterable[bytes | memoryview | pa.Buffer]) -> Written:
    """Writes and fsyncs the pieces under the temporary name of `path`. Raises StorageError."""
    target, storage = temporary(path), storage_of(path)
    digest = xxhash.xxh3_128()
    with storage_errors(path), open(target, "wb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
        file.flush()
        if storage.is_local:
            os.fsync(file.fileno())
        status = os.fstat(file.fileno())
    etag = storage.keep(path, target)
    return Written(path, status.st_size, digest.hexdigest(), status.st_mtime_ns, etag)


def publish(path: Path) -> None:
    """Gives the temporary file of `path` its own name. Raises StorageError."""
    with storage_errors(path):
        storage_of(path).publish(path, temporary(path))


def sync_folder(folder: Path) -> None:
    """Makes the renames in a folder durable; those of copies need not be. Raises StorageError."""
    if not storage_of(folder).is_local:
        return
    with storage_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """One small file, whole or not at all, durable when this returns. Raises StorageError."""
    write_temporary(path, [data])
    publish(path)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """The folder, durable with its parents. Raises StorageError, and ConfigError where it is meant as a URL.

    A `Path` makes `s3:/bucket` of `s3://bucket`, and a folder `s3:` here is not where anybody looks for it.
    """
    if folder.is_dir():
        return
    if scheme := next((part for part in folder.parts if part in _SCHEMES), None):
        raise ConfigError(
            f"{folder} begins with {scheme}//, which is a URL, and this is written to a disk alone; give a "
            "path here, and copy it there with the tool of that store"
        )
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    sync_folder(folder.parent)


def remove(path: Path) -> None:
    """Removes a file that may not be there. Raises StorageError."""
    with storage_errors(path):
        storage_of(path).forget(path)
        path.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> int:
    """Removes the temporary files below a folder that a killed process left; how many there were."""
    leftovers = list(folder.rglob(f".*{TEMPORARY_SUFFIX}"))
    for leftover in leftovers:
        remove(leftover)
    return len(leftovers)
