"""Who may run a pipeline, and how a run is stopped: the lock, the pause, the held signals."""

import contextlib
import fcntl
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple

from dataflow_assets.errors import PauseCause, Paused, PipelineBusy, Stopped, StorageError
from dataflow_assets.io.atomic import make_folder, storage_errors
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.replacement import finish_replacements
from dataflow_assets.io.storage import storage_of

LOCK_FILE = ".lock"
_LOOKERS_S = 0.5
_held: dict[str, "_Held"] = {}
_over: set[str] = set()


class _Held(NamedTuple):
    """The lock file of a run here, and the thread that has it."""

    file: IO[str]
    thread: int


@contextlib.contextmanager
def pipeline_lock(folder: Path) -> Iterator[float | None]:
    """Holds the pipeline's folder for this thread, which may take it again; no other may, nor a process.

    The kernel frees the lock when the process dies, however it dies; what it had begun to replace
    is finished here. On an object store a lease keeps other machines out, and the folder is made what the
    store has. Gives the time (seconds since the epoch) at which a holder that died without ending had
    begun, else None. Raises PipelineBusy that names the holder, StorageError where the folder cannot be
    made or the store does not answer.
    """
    make_folder(folder)
    path = str(folder.resolve() / LOCK_FILE)
    held, thread, died = _held.get(path), threading.get_ident(), None
    owner = held is None or held.thread != thread
    if owner:
        file, died = _locked(path)
        _held[path] = _Held(file, thread)
    try:
        if not owner:
            yield None
            return
        with storage_of(folder).held(folder) as died_elsewhere:
            finish_replacements(folder)
            yield died if died_elsewhere is None else died_elsewhere
    finally:
        if owner:
            file = _held.pop(path).file
            file.truncate(0)
            file.close()


def _locked(path: str) -> tuple[IO[str], float | None]:
    try:
        file = open(path, "a+", encoding="utf-8", opener=_no_link)  # noqa: SIM115  held until the run ends
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}; give permission on the root"
        ) from error
    if not _taken(file):
        file.seek(0)
        holder = file.read(200).strip() or "another process"
        file.close()
        raise PipelineBusy(
            f"the pipeline in {place_of(Path(path).parent)} is being run by {holder}; wait for it, or stop "
            "it: what it has committed is kept"
        )
    status = os.fstat(file.fileno())
    died = status.st_mtime if status.st_size else None
    with storage_errors(Path(path)):
        file.truncate(0)
        file.write(
            f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}"
        )
        file.flush()
    return file, died


def _taken(file: IO[str]) -> bool:
    """Whether the lock is ours now; whoever only looks at it has it for a moment, which is waited out."""
    end = time.monotonic() + _LOOKERS_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


@contextlib.contextmanager
def run_is_over(folder: Path) -> Iterator[None]:
    """Whoever looks within, in this process, does not take the run that just ended for one that goes on."""
    path = str(folder.resolve() / LOCK_FILE)
    _over.add(path)
    try:
        yield
    finally:
        _over.discard(path)


def is_locked(folder: Path) -> bool:
    """Whether a process, this one or another, holds the pipeline's folder now; see `run_is_over`."""
    return _is_locked_here(folder) or storage_of(folder).is_held(folder)


def look_again(folder: Path) -> None:
    """Makes a copy of an object store's folder what the store has now, unless a run here keeps it so.

    Raises StorageError.
    """
    storage = storage_of(folder)
    if not storage.is_local and not _is_locked_here(folder):
        storage.refresh(folder)


def _is_locked_here(folder: Path) -> bool:
    path = folder / LOCK_FILE
    if (own := str(folder.resolve() / LOCK_FILE)) in _held:
        return own not in _over
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@dataclass(frozen=True)
class Pause:
    """Who asked a pipeline to stand still, when (ISO 8601, UTC), why, and what kind of pause it is.

    `pipeline` is what `dataflow-assets resume` takes.
    """

    pipeline: str
    who: str
    when: str
    why: str = ""
    cause: PauseCause = "user"

    def __str__(self) -> str:
        because = f" because {self.why}" if self.why else ""
        return (
            f"{self.pipeline} is paused by {self.who} since {self.when}{because}; "
            f"`dataflow-assets resume {self.pipeline}` goes on"
        )

    def error(self) -> Paused:
        """The pause as what ends a run, or keeps it from beginning."""
        return Paused(str(self), self.cause)


class InMemory(NamedTuple):
    """Batches that are made and not yet committed, and their size: what a SIGKILL would cost."""

    batches: int = 0
    bytes: int = 0


class StopFlag:
    """Whether a signal or a pause asked the run to stop, and which; may be looked at from any thread.

    For a run with `write: lazy` it says too how much is held in memory, and whether somebody asked for
    it to be written now.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.paused: Pause | None = None
        self.held = InMemory()
        self.write_now = False

    def __bool__(self) -> bool:
        return self.signal is not None or self.paused is not None

    @property
    def reason(self) -> str:
        """What asked for the stop, for messages."""
        if self.signal is not None:
            return signal.Signals(self.signal).name
        return "a stop" if self.paused is None else "a pause"

    def raise_if_up(self) -> None:
        """Raises Stopped where a signal asked for a stop, Paused where a pause did."""
        if self.signal is not None:
            raise Stopped(f"stopped by {self.reason} at a batch border; run the same command to go on")
        if self.paused is not None:
            raise self.paused.error()


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def held_signals(flag: StopFlag | None = None) -> Iterator[StopFlag]:
    """Notes SIGINT and SIGTERM in the flag, so that the batches in hand are finished and committed.

    A second signal ends the process at once; nothing that was committed is lost. Outside of the
    main thread, where Python lets nobody hold signals, only a pause raises the flag.
    """
    flag = StopFlag() if flag is None else flag
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def note(number: int, frame: FrameType | None) -> None:
        if flag.signal is not None:
            os._exit(128 + number)
        flag.signal = number

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
