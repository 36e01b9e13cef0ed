"""Asks a store again where an answer may come the next time."""

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from dataflow_assets.errors import SourceError
from dataflow_assets.serving.backoff import wait_s
from dataflow_assets.sources.remote.store import RemoteFile, Restart, Store, Unreachable

ATTEMPTS = 6
BASE_S = 0.5
_MAX_S = 30.0
_Answer = TypeVar("_Answer")


def repeated(ask: Callable[[], _Answer]) -> _Answer:
    """The answer, after up to six attempts. Raises SourceError."""
    for attempt in range(ATTEMPTS):
        try:
            return ask()
        except Unreachable as error:
            _wait_or_raise(error, attempt)
    raise AssertionError("the last attempt raised")


def all_blocks(store: Store, file: RemoteFile) -> Iterator[bytes | None]:
    """The bytes of the file; where reading broke off it goes on from there.

    None says that it begins anew, and that what came before is void. Raises SourceError.
    """
    done = farthest = attempt = 0
    while True:
        try:
            for block in store.blocks(file, done):
                done += len(block)
                if done > farthest:  # a server that never gets further is not asked for ever
                    farthest, attempt = done, 0
                yield block
            if file.size is not None and done != file.size:
                raise Unreachable(f"source {file.name}: {done} bytes came, expected {file.size}")
            return
        except Restart:
            done = 0
            yield None
        except Unreachable as error:
            if file.size is not None and done > file.size:
                done = 0
                yield None
            _wait_or_raise(error, attempt)
            attempt += 1


def _wait_or_raise(error: Unreachable, attempt: int) -> None:
    if attempt + 1 >= ATTEMPTS:
        raise SourceError(
            f"{error} ({ATTEMPTS} attempts); run again when the store answers: what was read is kept"
        ) from error
    time.sleep(wait_s(attempt, BASE_S, _MAX_S, error.wait_s, random.Random()))
