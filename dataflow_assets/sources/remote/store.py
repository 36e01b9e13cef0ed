"""What a store of remote files can do, and what may go wrong with it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from dataflow_assets.errors import SourceError


class RemoteFile(NamedTuple):
    """A file as a store tells of it.

    `url` is the store's own word for it, credentials included; `name` is for people. `facts` (ETag,
    version, date, size) differ where the file does; `certain` says whether an unchanged file can be told
    by them. `size` is None where nobody says.
    """

    url: str
    name: str
    facts: Mapping[str, object]
    size: int | None
    certain: bool = True


class Store(Protocol):
    """Where remote files are: a web server, or a file system of fsspec."""

    def found(self, url: str) -> list[RemoteFile]:
        """The files that the URL means: itself, those of a folder, or of a glob. Raises SourceError."""
        ...

    def looked_at(self, file: RemoteFile) -> RemoteFile:
        """The file as it is now. Raises SourceError, Unreachable."""
        ...

    def blocks(self, file: RemoteFile, start: int) -> Iterator[bytes]:
        """Its bytes from this one on. Raises SourceError, Unreachable, Restart."""
        ...


class Unreachable(SourceError):
    """The store did not answer, or not to the end; the same again may go well. `wait_s`: what it asks for."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Restart(Exception):
    """The store does not give a part of the file: it must be read from the beginning."""
