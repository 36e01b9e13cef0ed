"""A folder of files that is there whole or not at all, and is replaced only where we wrote all of it."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.atomic import make_folder, storage_errors, sync_folder, temporary

MARK = ".dataflow_assets"
_REPLACED = ".replaced"


@contextlib.contextmanager
def whole_folder(to: Path) -> Iterator[Path]:
    """A new folder to write into, which becomes `to` at the end, in the place of an earlier export there.

    Raises ConfigError where `to` holds what no export wrote, StorageError.
    """
    to = to.absolute()
    _check_replaceable(to)
    make_folder(to.parent)
    new, old = temporary(to), temporary(to.with_name(to.name + _REPLACED))
    with storage_errors(to):
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        new.mkdir()
    try:
        with storage_errors(to):
            yield new
            (new / MARK).write_text("".join(f"{name}\n" for name in _names(new)), "utf-8")
            _sync(new)
            if to.exists():
                to.rename(old)
            new.rename(to)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    sync_folder(to.parent)
    shutil.rmtree(old, ignore_errors=True)


def _check_replaceable(to: Path) -> None:
    if to.is_dir() and not to.is_symlink():
        ours = (to / MARK).read_text("utf-8").splitlines() if (to / MARK).is_file() else []
        if strange := [name for name in _names(to) if name not in {MARK, *ours}]:
            raise ConfigError(
                f"the folder {to} holds {strange[0]}, which no export wrote, and would be replaced with it; "
                "move that away, or give a new folder"
            )
        return
    if to.exists() or to.is_symlink():
        raise ConfigError(f"{to} is there and no folder; give the name of a new folder")


def _names(folder: Path) -> list[str]:
    """What is in the folder and in those below it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def _sync(folder: Path) -> None:
    """Makes the folder's files durable."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        else:
            sync_folder(path)
    sync_folder(folder)
