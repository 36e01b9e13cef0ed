"""Objects in any other store that fsspec knows: `gs://`, `az://`, and `memory://` for tests.

A new object is put on the condition that it is new. For one that replaces another fsspec has no condition:
what is there is looked at, and then replaced.
"""

import errno
import os
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from dataflow_assets.io.objects.retries import retried
from dataflow_assets.io.objects.store import NOTHING, Conflict, Entry, Found

_Result = TypeVar("_Result")
_TAGS = ("ETag", "etag", "generation", "md5Hash", "created", "last_modified", "mtime")


class FsspecStore:
    """The objects of one bucket of a protocol."""

    def __init__(self, protocol: str, bucket: str) -> None:
        self.protocol = protocol
        self.bucket = bucket

    @cached_property
    def _files(self) -> Any:
        import fsspec

        return fsspec.filesystem(self.protocol, use_listings_cache=False)

    def _path(self, name: str) -> str:
        return f"{self.bucket}/{name}"

    def _ask(self, name: str, attempt: Callable[[], _Result]) -> _Result:
        return retried(f"{self.protocol}://{self._path(name)}", attempt, _may_pass, _reason)

    def listed(self, prefix: str) -> dict[str, Entry]:
        """One listing; how many requests that is, fsspec decides."""
        place = self._path(prefix.removesuffix("/"))
        try:
            found = self._ask(prefix, lambda: self._files.find(place, detail=True))
        except FileNotFoundError:
            return {}
        start = len(self._bare(self.bucket)) + 1
        return {
            self._bare(path)[start:]: _entry(info)
            for path, info in found.items()
            if self._bare(path)[start:].startswith(prefix)
        }

    def _bare(self, path: str) -> str:
        return path.removeprefix("/")

    def get(self, name: str) -> Found:
        """A whole object, read again where it was replaced meanwhile."""

        def attempt() -> Found:
            before = _entry(self._files.info(self._path(name)))
            data = self._files.cat_file(self._path(name))
            if _entry(self._files.info(self._path(name))) != before:
                raise ConnectionError("it was replaced while it was read")
            return Found(data, before.etag)

        return self._ask(name, attempt)

    def get_file(self, name: str, to: Path) -> str:
        """The object as a file."""
        found = self.get(name)
        to.write_bytes(found.data)
        return found.etag

    def put(self, name: str, data: bytes, expected: str | None = None) -> str:
        """Looks at what is there, then puts; a new object is put on the condition that it is new."""

        def attempt() -> str:
            mode = "create" if expected == NOTHING else "overwrite"
            try:
                if expected and expected != self._tag(name):
                    raise FileExistsError
                self._files.pipe_file(self._path(name), data, mode=mode)
            except FileExistsError:
                found = self._tag(name)
                if not found or self._files.cat_file(self._path(name)) != data:
                    raise Conflict(name) from None
            return self._tag(name)

        return self._ask(name, attempt)

    def _tag(self, name: str) -> str:
        try:
            return _entry(self._files.info(self._path(name))).etag
        except FileNotFoundError:
            return ""

    def put_file(self, name: str, path: Path) -> str:
        """As fsspec's package for the store does it."""

        def attempt() -> str:
            self._files.put_file(os.fspath(path), self._path(name))
            return self._tag(name)

        return self._ask(name, attempt)

    def remove(self, name: str) -> None:
        """Removes an object that may not be there."""
        try:
            self._ask(name, lambda: self._files.rm_file(self._path(name)))
        except FileNotFoundError:
            return

    def abort_uploads(self, prefix: str) -> int:
        """Other stores forget an upload that was not ended by themselves."""
        return 0


def _entry(info: dict) -> Entry:
    tag = next((info[name] for name in _TAGS if info.get(name)), "")
    return Entry(int(info.get("size") or 0), str(tag.timestamp() if isinstance(tag, datetime) else tag))


def _may_pass(error: Exception) -> bool:
    if isinstance(error, Conflict):
        raise error
    status = (
        getattr(error, "status", None) or getattr(error, "status_code", None) or getattr(error, "code", 0)
    )
    is_passing = isinstance(status, int) and (status >= 500 or status == 429)
    return is_passing or isinstance(error, (ConnectionError, TimeoutError))


def _reason(error: Exception) -> str:
    """The kind alone: messages may hold signed addresses. Raises what is no error of a store."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise error
    return type(error).__name__
