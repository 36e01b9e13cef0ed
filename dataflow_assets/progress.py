"""Who is told of steps, rows and committed batches while a run goes on."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.serving.usage import Usage


class StepBegun(NamedTuple):
    """An asset begins; `batches` is how many it has, None where that is not known yet."""

    asset: str
    batches: int | None


class RowAnswered(NamedTuple):
    """A row of a step that asks a model is done, though its batch is not; told in any thread."""

    asset: str
    has_failed: bool
    usage: Usage


class BatchDone(NamedTuple):
    """A batch of an asset was committed, or found committed."""

    asset: str
    record: CommitRecord
    reused: bool


Listener = Callable[[BatchDone], None]
_listeners: list[Listener] = []
_step_listeners: list[Callable[[StepBegun], None]] = []
_row_listeners: list[Callable[[RowAnswered], None]] = []
_sayers: list[Callable[[str], None]] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Calls `listener` for each batch that this process commits meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def listening_closely(
    on_step: Callable[[StepBegun], None],
    on_row: Callable[[RowAnswered], None],
    on_words: Callable[[str], None],
) -> Iterator[None]:
    """Calls `on_step` and `on_row` for what this process does between its commits meanwhile.

    `on_words` has each line that is said of the run.
    """
    _step_listeners.append(on_step)
    _row_listeners.append(on_row)
    _sayers.append(on_words)
    try:
        yield
    finally:
        _step_listeners.remove(on_step)
        _row_listeners.remove(on_row)
        _sayers.remove(on_words)


def tell(done: BatchDone) -> None:
    """Tells all listeners of a batch."""
    for listener in _listeners:
        listener(done)


def tell_step(begun: StepBegun) -> None:
    """Tells all who listen closely that a step begins."""
    for listener in _step_listeners:
        listener(begun)


def tell_row(answered: RowAnswered) -> None:
    """Tells all who listen closely of a row."""
    for listener in _row_listeners:
        listener(answered)


def say(text: str) -> None:
    """Says one line of the run: to whoever listens closely, else on standard error."""
    if _sayers:
        _sayers[-1](text)
    else:
        print(text, file=sys.stderr, flush=True)  # noqa: T201  nobody else hears it
