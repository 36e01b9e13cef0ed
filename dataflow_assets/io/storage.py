"""Where files are kept: on this disk alone, or on an object store of which this disk has a copy.

Everything else works on local paths. What must differ is here, and is asked of `storage_of(path)`.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dataflow_assets.io.objects.places import is_copy


class Storage(Protocol):
    """What the commit protocol asks of the place of a file. All methods raise StorageError."""

    is_local: bool

    def keep(self, path: Path, draft: Path) -> str:
        """Makes the content of a draft, a closed file, durable; its ETag, empty for a disk.

        It is durable under the draft's name, or as `path` at once where nothing is replaced by that.
        """
        ...

    def publish(self, path: Path, draft: Path) -> None:
        """Gives a draft that is kept its own name. Raises OSError."""
        ...

    def forget(self, path: Path) -> None:
        """Removes a file for everybody else, before it is removed here."""
        ...

    def is_kept(self, path: str, size: int, etag: str) -> bool | None:
        """Whether an object of this size and ETag is there; None where only its content can tell."""
        ...

    def bring(self, path: str) -> None:
        """Brings a file here that is not here yet; one that is nowhere stays away."""
        ...

    def bring_all(self, paths: Iterable[str]) -> None:
        """Brings many files, at the same time where that is faster."""
        ...

    def names_in(self, folder: Path) -> list[str]:
        """The names of the files and folders in a folder, brought here or not. Raises OSError."""
        ...

    def held(self, folder: Path) -> AbstractContextManager[float | None]:
        """Holds a folder for all machines; gives when a holder on another one died. Raises PipelineBusy."""
        ...

    def is_held(self, folder: Path) -> bool:
        """Whether another machine holds the folder."""
        ...

    def refresh(self, folder: Path) -> None:
        """Makes what is here of a folder what it is now, where nobody on this machine writes to it."""
        ...


class LocalDisk:
    """Files on this disk: what is here is all there is."""

    is_local = True

    def keep(self, path: Path, draft: Path) -> str:
        """Its writer has made it durable."""
        return ""

    def publish(self, path: Path, draft: Path) -> None:
        """One rename."""
        os.replace(draft, path)

    def forget(self, path: Path) -> None:
        """Nobody else has it."""

    def is_kept(self, path: str, size: int, etag: str) -> bool | None:
        """A disk tells by the file itself."""
        return None

    def bring(self, path: str) -> None:
        """It is here, or nowhere."""

    def bring_all(self, paths: Iterable[str]) -> None:
        """They are here, or nowhere."""

    def names_in(self, folder: Path) -> list[str]:
        """As the disk lists them."""
        return os.listdir(folder)

    @contextlib.contextmanager
    def held(self, folder: Path) -> Iterator[float | None]:
        """The file lock is enough."""
        yield None

    def is_held(self, folder: Path) -> bool:
        """The file lock says so."""
        return False

    def refresh(self, folder: Path) -> None:
        """It is what it is."""


LOCAL_DISK = LocalDisk()


def storage_of(path: str | Path) -> Storage:
    """Where the file or folder is kept."""
    if not is_copy(str(path)):
        return LOCAL_DISK
    from dataflow_assets.io.objects.copies import copies_of

    return copies_of(path)
