"""Who may run a pipeline, and how a run is stopped: the lock, the held signals, the clean cancel."""

import contextlib
import fcntl
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO

from dataflow_assets.errors import PipelineBusy, Stopped, StorageError
from dataflow_assets.io.atomic import make_folder, storage_errors

LOCK_FILE = ".lock"
_held: dict[str, IO[str]] = {}
_held_guard = threading.Lock()


@contextlib.contextmanager
def pipeline_lock(folder: Path) -> Iterator[float | None]:
    """Holds the pipeline's folder for this process; within the process it may be taken again.

    The kernel frees the lock when the process dies, however it dies. Gives the time (seconds since
    the epoch) at which a holder that died without ending had begun, else None. Raises PipelineBusy
    that names the holder, StorageError where the folder cannot be made.
    """
    make_folder(folder)
    path = str(folder.resolve() / LOCK_FILE)
    with _held_guard:
        owner = path not in _held
        died = None
        if owner:
            _held[path], died = _locked(path)
    try:
        yield died
    finally:
        if owner:
            with _held_guard:
                file = _held.pop(path)
                file.truncate(0)
                file.close()


def _locked(path: str) -> tuple[IO[str], float | None]:
    try:
        file = open(path, "a+", encoding="utf-8", opener=_no_link)  # noqa: SIM115  held until the run ends
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}; give permission on the root"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read(200).strip() or "another process"
        file.close()
        raise PipelineBusy(
            f"the pipeline in {os.path.dirname(path)} is being run by {holder}; wait for it, or stop it: "
            "what it has committed is kept"
        ) from None
    status = os.fstat(file.fileno())
    died = status.st_mtime if status.st_size else None
    with storage_errors(Path(path)):
        file.truncate(0)
        file.write(
            f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}"
        )
        file.flush()
    return file, died


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def is_locked(folder: Path) -> bool:
    """Whether a process, this one or another, holds the pipeline's folder now."""
    path = folder / LOCK_FILE
    if str(folder.resolve() / LOCK_FILE) in _held:
        return True
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


class StopFlag:
    """Whether a signal asked the run to stop, and which."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def reason(self) -> str:
        """What asked for the stop, for messages."""
        return "a stop" if self.signal is None else signal.Signals(self.signal).name

    def raise_if_up(self) -> None:
        """Raises Stopped where a stop was asked for."""
        if self:
            raise Stopped(f"stopped by {self.reason} at a batch border; run the same command to go on")


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def held_signals() -> Iterator[StopFlag]:
    """Notes SIGINT and SIGTERM in the flag, so that the batches in hand are finished and committed.

    A second signal ends the process at once; nothing that was committed is lost. Outside of the
    main thread, where Python lets nobody hold signals, the flag stays down.
    """
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def note(number: int, frame: FrameType | None) -> None:
        if flag:
            os._exit(128 + number)
        flag.signal = number

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
