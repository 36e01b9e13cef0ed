"""What is asked of an object store."""

from pathlib import Path
from typing import NamedTuple, Protocol

NOTHING = ""
"""Expected of an object that must not be there before."""


class Conflict(Exception):
    """An object is not what it was expected to be when it was put."""


class Entry(NamedTuple):
    """An object in a listing; `etag` is another for other content."""

    size: int
    etag: str


class Found(NamedTuple):
    """An object that was read; `age_s` is its age by the store's own clock, where it tells."""

    data: bytes
    etag: str
    age_s: float | None = None


class ObjectStore(Protocol):
    """The objects of one bucket, by their names. Thread-safe.

    All methods try again what may pass, and then raise StorageError.
    """

    def listed(self, prefix: str) -> dict[str, Entry]:
        """All objects whose names begin with the prefix, which ends in `/`."""
        ...

    def get(self, name: str) -> Found:
        """A whole object. Raises FileNotFoundError."""
        ...

    def get_file(self, name: str, to: Path) -> str:
        """Writes an object to a file and gives its ETag. Raises FileNotFoundError."""
        ...

    def put(self, name: str, data: bytes, expected: str | None = None) -> str:
        """Puts an object and gives its ETag.

        `expected` is the ETag of what it replaces, or NOTHING: raises Conflict where something else is
        there, unless it is these very bytes.
        """
        ...

    def put_file(self, name: str, path: Path) -> str:
        """Puts the content of a file, in parts where it is large, and gives the ETag."""
        ...

    def remove(self, name: str) -> None:
        """Removes an object that may not be there."""
        ...

    def abort_uploads(self, prefix: str) -> int:
        """Ends the uploads in parts that a killed process left below the prefix; how many there were."""
        ...
