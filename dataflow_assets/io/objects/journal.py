"""What is known of the objects of one folder, beside their copies, for all processes of this machine.

A line for each change: a name, the object's ETag and size, and the time of the copy that was made of it.
"""

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

JOURNAL = ".objects"


class Known(NamedTuple):
    """An object, and the modification time of its copy (ns); 0 where there is no copy."""

    size: int
    etag: str
    mtime_ns: int = 0


class Journal:
    """The objects of one folder as the newest lines of its journal say. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / JOURNAL)
        self._guard = threading.Lock()
        self._entries: dict[str, Known] = {}
        self._inode = self._read_to = 0

    def get(self, name: str) -> Known | None:
        """What is known of an object; None for none of that name."""
        with self._guard:
            self._catch_up()
            return self._entries.get(name)

    def all(self) -> dict[str, Known]:
        """All objects of the folder."""
        with self._guard:
            self._catch_up()
            return dict(self._entries)

    def add(self, name: str, known: Known | None) -> None:
        """Notes an object as it is now, None for one that is gone. One write: lines never mix."""
        line = b"\n" + orjson.dumps([name, *(known or ())]) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def rewrite(self, entries: Mapping[str, Known]) -> None:
        """Notes exactly these objects."""
        lines = b"\n".join(orjson.dumps([name, *known]) for name, known in entries.items())
        temporary = f"{self._path}.{os.getpid()}.tmp"
        with open(temporary, "wb") as file:
            file.write(lines + b"\n")
        os.replace(temporary, self._path)

    def _catch_up(self) -> None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            self._entries, self._inode, self._read_to = {}, 0, 0
            return
        if status.st_ino != self._inode or status.st_size < self._read_to:
            self._entries, self._inode, self._read_to = {}, status.st_ino, 0
        if status.st_size == self._read_to:
            return
        with open(self._path, "rb") as file:
            file.seek(self._read_to)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in filter(None, whole.split(b"\n")):
            with contextlib.suppress(ValueError, TypeError):  # a line that a killed process tore
                name, *known = orjson.loads(line)
                if known:
                    self._entries[name] = Known(*known)
                else:
                    self._entries.pop(name, None)
