"""`python -m dataflow_assets_tests.crash.driver POINT:N ARGUMENTS`: the command, disturbed at the N-th POINT.

A point is a place between two system calls of a commit. The functions of the product are wrapped
in this process alone; the product knows nothing of it.
"""

import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from dataflow_assets.cli.main import main
from dataflow_assets.io import atomic
from dataflow_assets.io.step_folder import COMMITS
from dataflow_assets.step_work import StepWork

Test = Callable[..., bool]


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """True at the N-th call, whatever thread it comes from."""

    def __init__(self, calls: int) -> None:
        self._left = calls
        self._lock = threading.Lock()

    def __call__(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0


def die_before(owner: object, name: str, calls: int, counts: Test = lambda *_, **__: True) -> None:
    """Kills this process before the N-th call of `owner.name` whose arguments count."""
    _wrap(owner, name, calls, counts, die, lambda *_: None)


def die_after(owner: object, name: str, calls: int, counts: Test = lambda *_, **__: True) -> None:
    """Kills this process after the N-th call of `owner.name` whose arguments count."""
    _wrap(owner, name, calls, counts, lambda *_: None, die)


def _wrap(owner: object, name: str, calls: int, counts: Test, before: Callable, after: Callable) -> None:
    function, is_due = getattr(owner, name), Countdown(calls)

    def wrapped(*args: object, **kwargs: object) -> object:
        due = counts(*args, **kwargs) and is_due()
        if due:
            before(*args)
        result = function(*args, **kwargs)
        if due:
            after(*args)
        return result

    setattr(owner, name, wrapped)


def is_record(path: Path, *_: object) -> bool:
    return path.parent.name == COMMITS


def is_data(path: Path, *_: object) -> bool:
    return path.parent.name != COMMITS


def half_written(path: Path, pieces: Iterable[bytes]) -> None:
    """What a process leaves that dies in the middle of a write."""
    data = b"".join(map(bytes, pieces))
    with open(atomic.temporary(path), "wb") as file:
        file.write(data[: len(data) // 2])
    die()


def at_registering(calls: int, kill: Callable) -> None:
    from dagster import DagsterInstance

    kill(DagsterInstance, "add_dynamic_partitions", calls)


def at_manifest(calls: int, kill: Callable) -> None:
    from dataflow_assets.sources.manifest import Manifest

    kill(Manifest, "write", calls)


def at_event(calls: int) -> None:
    from dagster import OutputContext

    die_before(OutputContext, "log_event", calls)


def full_disk(calls: int) -> None:
    """From the N-th write on, files of the root cannot grow past a few bytes."""
    write, is_due = atomic.write_temporary, Countdown(calls)
    is_full = threading.Event()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limited(path: Path, data: Iterable[bytes]) -> atomic.Written:
        if is_due():
            is_full.set()
        if not is_full.is_set():
            return write(path, data)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
        try:
            return write(path, data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    atomic.write_temporary = limited


def signal_between(number: signal.Signals) -> Callable[[int], None]:
    """A signal before the N-th time that a step's batches are asked for, when nothing is in hand."""

    def install(calls: int) -> None:
        _wrap(StepWork, "stream", calls, always, lambda *_: os.kill(os.getpid(), number), lambda *_: None)

    return install


def signal_before_steps(calls: int) -> None:
    """A signal outside of Dagster, before the N-th search for what is to do."""
    from dataflow_assets import run

    _wrap(run, "plan_of", calls, always, lambda *_: os.kill(os.getpid(), signal.SIGTERM), lambda *_: None)


def always(*_: object, **__: object) -> bool:
    return True


POINTS: dict[str, Callable[[int], None]] = {
    "before_write": lambda calls: die_before(atomic, "write_temporary", calls),
    "mid_write": lambda calls: _wrap(atomic, "write_temporary", calls, always, half_written, die),
    "after_fsync": lambda calls: die_after(atomic, "write_temporary", calls),
    "after_rename": lambda calls: die_after(atomic, "publish", calls, is_data),
    "before_record": lambda calls: die_before(atomic, "write_temporary", calls, is_record),
    "record_renamed": lambda calls: die_after(atomic, "publish", calls, is_record),
    "after_record": lambda calls: die_after(atomic, "write_atomically", calls, is_record),
    "before_event": at_event,
    "before_manifest": lambda calls: at_manifest(calls, die_before),
    "after_manifest": lambda calls: at_manifest(calls, die_after),
    "before_registering": lambda calls: at_registering(calls, die_before),
    "after_registering": lambda calls: at_registering(calls, die_after),
    "full_disk": full_disk,
    "sigint_between": signal_between(signal.SIGINT),
    "sigterm_between": signal_between(signal.SIGTERM),
    "sigterm_before_steps": signal_before_steps,
}


if __name__ == "__main__":
    point, _, number = sys.argv.pop(1).partition(":")
    POINTS[point](int(number))
    main()
