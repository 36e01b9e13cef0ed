"""Files of an object store: objects first, then their copies on this disk.

What decides is small (the manifest, commit records, edits) and is here after each `refresh`, exactly as it
is in the store; rows are brought when they are read. A copy counts for as long as its object has the same
ETag.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from dataflow_assets.errors import PipelineBusy, StorageError
from dataflow_assets.failed_queue.edits import EDITS
from dataflow_assets.io.atomic import TEMPORARY_SUFFIX, storage_errors
from dataflow_assets.io.layout import MANIFEST, READING, STATE
from dataflow_assets.io.objects.journal import JOURNAL, Journal, Known
from dataflow_assets.io.objects.lease import LEASE, Lease
from dataflow_assets.io.objects.packs import PACK, packed, unpacked
from dataflow_assets.io.objects.places import place_of, roots
from dataflow_assets.io.objects.store import NOTHING, Conflict, Entry, ObjectStore
from dataflow_assets.io.step_folder import COMMITS, PROFILES

AT_ONCE = 16
_SYNC = ".sync"
_NOT_COPIED = {".lock", _SYNC, JOURNAL, LEASE, PACK}
_FRESH_S = 2.0
_MANY = 64


class Copies:
    """The copies of the objects of one bucket, below the folder `here`. Thread-safe."""

    is_local = False

    def __init__(self, here: Path, store: ObjectStore) -> None:
        self._here = here
        self._start = len(str(here)) + 1
        self._store = store
        self._journals: dict[str, Journal] = {}
        self._leases: dict[str, Lease] = {}
        self._refreshed: dict[Path, float] = {}
        self._guard = threading.Lock()

    def keep(self, path: Path, draft: Path) -> str:
        """Puts the object; rows that would replace others are put under the draft's name.

        What decides is put on the condition that it is still what this process read, or made. Raises
        PipelineBusy where another process put it since.
        """
        self._check_lease(path)
        known = self._journal(path.parent).get(path.name)
        target = draft if known is not None and _holds_rows(path) else path
        try:
            return self._put(target, draft, (known.etag if known else NOTHING) if _decides(path) else None)
        except Conflict:
            raise PipelineBusy(
                f"{place_of(path)} was written by another process since this one read it; what was "
                "committed is kept: wait until the other one has ended, then run the same command again"
            ) from None

    def publish(self, path: Path, draft: Path) -> None:
        """Puts the object where only its draft is one, and makes the draft its copy."""
        if self._journal(draft.parent).get(draft.name) is None:
            os.replace(draft, path)
            return
        self._check_lease(path)
        self.bring(str(draft))
        self._put(path, draft, None)
        self.forget(draft)
        os.replace(draft, path)

    def _put(self, path: Path, content: Path, expected: str | None) -> str:
        status = os.stat(content)
        if expected is None:
            etag = self._store.put_file(self._name(path), content)
        else:
            etag = self._store.put(self._name(path), content.read_bytes(), expected)
        self._journal(path.parent).add(path.name, Known(status.st_size, etag, status.st_mtime_ns))
        return etag

    def forget(self, path: Path) -> None:
        """Removes the object."""
        if self._journal(path.parent).get(path.name) is None:
            return
        self._check_lease(path)
        self._store.remove(self._name(path))
        self._journal(path.parent).add(path.name, None)

    def is_kept(self, path: str, size: int, etag: str) -> bool | None:
        """By what is known of the object; one of another ETag may still have the same content."""
        folder, _, name = os.path.normpath(path).rpartition("/")
        known = self._journal(folder).get(name)
        if known is None or known.size != size:
            return False
        return True if known.etag == etag else None

    def bring(self, path: str) -> None:
        """Copies the object, unless its copy is here."""
        folder, _, name = os.path.normpath(path).rpartition("/")
        journal = self._journal(folder)
        known = journal.get(name)
        if known is None or _is_here(path, known):
            return
        draft = Path(folder, f".{name}.{os.getpid()}-{threading.get_ident()}{TEMPORARY_SUFFIX}")
        try:
            etag = self._store.get_file(self._name(path), draft)
        except FileNotFoundError:  # removed since it was listed
            return
        status = os.stat(draft)
        os.replace(draft, path)
        journal.add(name, Known(status.st_size, etag, status.st_mtime_ns))

    def bring_all(self, paths: Iterable[str]) -> None:
        """Copies many objects at the same time."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.bring, paths))

    def names_in(self, folder: Path) -> list[str]:
        """Objects by what is known of them, folders by their copies."""
        folders = [entry.name for entry in os.scandir(folder) if entry.is_dir()]
        return [*folders, *self._journal(folder).all()]

    @contextlib.contextmanager
    def held(self, folder: Path) -> Iterator[float | None]:
        """Takes the lease, makes the copy exact and ends uploads that were left; frees it at the end."""
        lease = Lease(self._store, self._name(folder), place_of(folder))
        died = lease.take()
        try:
            self._store.abort_uploads(f"{self._name(folder)}/")
            self._pack(self._copy(folder))
            before = self._records(folder)
            self._leases[f"{folder}/"] = lease
            yield died
            now = self._records(folder)
            self._pack([commits for commits in now if now[commits] != before.get(commits)])
        finally:
            self._leases.pop(f"{folder}/", None)
            lease.free()

    def is_held(self, folder: Path) -> bool:
        """Whether the lease was renewed in time."""
        return Lease(self._store, self._name(folder), place_of(folder)).is_held()

    def refresh(self, folder: Path) -> None:
        """Makes the copy exact, where it was not looked at in the last two seconds."""
        with self._guard:
            if time.monotonic() - self._refreshed.get(folder, -_FRESH_S) < _FRESH_S:
                return
            self._copy(folder)
            self._refreshed[folder] = time.monotonic()

    def _name(self, path: str | Path) -> str:
        return str(path)[self._start :]

    def _journal(self, folder: str | Path) -> Journal:
        return self._journals.get(str(folder)) or self._journals.setdefault(
            str(folder), Journal(Path(folder))
        )

    def _check_lease(self, path: Path) -> None:
        for folder, lease in list(self._leases.items()):
            if str(path).startswith(folder):
                lease.check()

    def _copy(self, folder: Path) -> list[Path]:
        """Makes the copy of a folder exact: what decides is brought, what is out of date is removed.

        Gives the folders of records that had to be brought one by one.
        """
        with storage_errors(folder), contextlib.ExitStack() as stack:
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(open(folder / _SYNC, "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            listed = self._listed(folder)
            _remove_unlisted(folder, listed)
            wanted = {parent: self._of_folder(parent, entries) for parent, entries in listed.items()}
            self.bring_all(str(path) for paths in wanted.values() for path in paths)
        return [parent for parent, paths in wanted.items() if parent.name == COMMITS and len(paths) > _MANY]

    def _listed(self, folder: Path) -> dict[Path, dict[str, Entry]]:
        """What the store has, by folders; those of which nothing is left are in it, empty."""
        listed: dict[Path, dict[str, Entry]] = {folder: {}}
        for name, entry in self._store.listed(f"{self._name(folder)}/").items():
            path = self._here / name
            if not _is_odd(name):
                listed.setdefault(path.parent, {})[path.name] = entry
        for journal in folder.rglob(JOURNAL):
            listed.setdefault(journal.parent, {})
        return listed

    def _of_folder(self, folder: Path, entries: dict[str, Entry]) -> list[Path]:
        """Notes the objects of one folder; those that are to be brought. Copies of others are removed."""
        folder.mkdir(parents=True, exist_ok=True)
        journal = self._journal(folder)
        before, now, wanted = journal.all(), {}, []
        for name, entry in entries.items():
            if name in _NOT_COPIED:
                continue
            known = before.get(name)
            is_same = known is not None and known.etag == entry.etag and _is_here(f"{folder}/{name}", known)
            now[name] = Known(*entry, known.mtime_ns if known is not None and is_same else 0)
            if not is_same:
                (folder / name).unlink(missing_ok=True)
                if _is_brought(folder / name):
                    wanted.append(folder / name)
        if now != before:
            journal.rewrite(now)
        if PACK in entries and len(wanted) > _MANY:
            return self._from_pack(folder, wanted, now)
        return wanted

    def _from_pack(self, folder: Path, wanted: list[Path], now: dict[str, Known]) -> list[Path]:
        """Takes from the folder's pack what is as the store has it; what is left to be brought."""
        try:
            found = unpacked(self._store.get(self._name(folder / PACK)).data)
        except FileNotFoundError:
            return wanted
        left = []
        for path in wanted:
            etag, data = found.get(path.name, ("", b""))
            if etag != now[path.name].etag:
                left.append(path)
                continue
            path.write_bytes(data)
            now[path.name] = now[path.name]._replace(mtime_ns=os.stat(path).st_mtime_ns)
        self._journal(folder).rewrite(now)
        return left

    def _records(self, folder: Path) -> dict[Path, dict[str, Known]]:
        """What is known of the commit records, by their folders."""
        return {commits: self._journal(commits).all() for commits in folder.rglob(COMMITS)}

    def _pack(self, folders: Iterable[Path]) -> None:
        """Puts all records of a folder in one object, where that saves others many requests."""
        for folder in folders:
            known = self._journal(folder).all()
            if len(known) > _MANY:
                with contextlib.suppress(StorageError):  # it may be missing
                    self._store.put(self._name(folder / PACK), packed(folder, known))


def _decides(path: Path) -> bool:
    """Whether two writers must not both win: commit records and manifests."""
    return path.parent.name == COMMITS or path.name == MANIFEST


def _holds_rows(path: Path) -> bool:
    """Whether a record says what the file must be: it is not replaced before the record can be."""
    return not _decides(path) and path.parent.name not in (STATE, PROFILES) and not path.name.startswith(".")


def _is_brought(path: Path) -> bool:
    """What is small and looked at by whoever looks at the pipeline."""
    is_small = (
        path.parent.name in (COMMITS, STATE) or path.name in (MANIFEST, READING) or path.name.startswith(".")
    )
    return is_small or EDITS in path.parts


def _is_odd(name: str) -> bool:
    """A name that no file of ours has, or can have."""
    return any(part in ("", ".", "..") or len(part.encode()) > 255 for part in name.split("/"))


def _is_here(path: str, known: Known) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_mtime_ns == known.mtime_ns and status.st_size == known.size


def _remove_unlisted(folder: Path, listed: dict[Path, dict[str, Entry]]) -> None:
    """Removes copies whose objects are gone."""
    for place, _, names in os.walk(folder):
        there = listed.get(Path(place), {})
        for name in names:
            if name not in there and name not in _NOT_COPIED and not name.endswith(TEMPORARY_SUFFIX):
                Path(place, name).unlink(missing_ok=True)


def copies_of(path: str | Path) -> Copies:
    """The copies that the path is among."""
    base = roots()
    protocol, bucket, *_ = Path(path).relative_to(base).parts
    return _copies(base, protocol, bucket)


@lru_cache(maxsize=32)
def _copies(base: Path, protocol: str, bucket: str) -> Copies:
    if protocol == "s3":
        from dataflow_assets.io.objects.s3 import S3Store

        return Copies(base / protocol / bucket, S3Store(bucket))
    from dataflow_assets.io.objects.fsspec_store import FsspecStore

    return Copies(base / protocol / bucket, FsspecStore(protocol, bucket))
