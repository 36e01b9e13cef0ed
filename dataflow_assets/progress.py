"""Who is told of each committed batch while a run goes on."""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dataflow_assets.io.commit_record import CommitRecord


class BatchDone(NamedTuple):
    """A batch of an asset was committed, or found committed."""

    asset: str
    record: CommitRecord
    reused: bool


Listener = Callable[[BatchDone], None]
_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Calls `listener` for each batch that this process commits meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(done: BatchDone) -> None:
    """Tells all listeners."""
    for listener in _listeners:
        listener(done)
