"""Who may write to a pipeline's folder on an object store: one object that its holder renews.

A holder renews it every sixth of its time; one that has not been renewed for that time may be taken. Nobody
compares clocks: a lease is old by the store's own clock, or was seen unchanged for its time by ours.
"""

import contextlib
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass, replace

import orjson

from dataflow_assets.errors import ConfigError, PipelineBusy, StorageError
from dataflow_assets.io.objects.places import CACHE_VARIABLE, roots
from dataflow_assets.io.objects.store import NOTHING, Conflict, Found, ObjectStore

LEASE = ".lease"
LEASE_VARIABLE = "DATAFLOW_LEASE_S"
DEFAULT_LEASE_S = 30.0
_LOOKS = 10
_IDENTITY = ".id"


@dataclass(frozen=True)
class _Holder:
    """What the object says. `disk` names the folder of copies, whose file locks tell who is alive there."""

    token: str
    who: str
    since: float
    disk: str
    lease_s: float
    beat: int = 0
    is_free: bool = False

    def to_bytes(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "_Holder | None":
        """None for bytes that are no lease: nobody holds it."""
        try:
            return cls(**orjson.loads(data))
        except (ValueError, TypeError):
            return None


def lease_seconds() -> float:
    """DATAFLOW_LEASE_S, by default 30. Raises ConfigError."""
    text = os.environ.get(LEASE_VARIABLE)
    try:
        seconds = float(text) if text else DEFAULT_LEASE_S
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 3600:
        raise ConfigError(f"{LEASE_VARIABLE} is {text!r}; expected seconds from 1 to 3600")
    return seconds


class Lease:
    """The lease of one pipeline's folder, held from `take` to `free`."""

    def __init__(self, store: ObjectStore, folder: str, shown: str) -> None:
        self._store = store
        self._name = f"{folder}/{LEASE}"
        self._shown = shown
        who = f"process {os.getpid()} on {socket.gethostname()}"
        self._mine = _Holder(uuid.uuid4().hex, who, time.time(), _disk(), lease_seconds())
        self._etag = NOTHING
        self._renewed = 0.0
        self._is_lost = False
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def take(self) -> float | None:
        """Takes the lease; when a holder that died without ending had begun, else None.

        The pipeline's file lock must be held: it proves that no holder with these copies is alive. Raises
        PipelineBusy where another machine's holder renews it; that takes up to the time of the lease.
        """
        while True:
            found, held = self._read()
            died = held.since if held is not None and not held.is_free else None
            if died is not None and held is not None and held.disk != self._mine.disk:
                self._wait_for_its_end(found, held)
            try:
                self._put(found.etag if found else NOTHING)
            except Conflict:
                continue  # somebody was quicker: look again
            self._thread.start()
            return died

    def is_held(self) -> bool:
        """Whether a holder on any machine has renewed it in time, as far as one look can tell."""
        found, held = self._read()
        if found is None or held is None or held.is_free:
            return False
        return found.age_s is None or found.age_s <= held.lease_s

    def check(self) -> None:
        """Raises PipelineBusy where the lease was lost, StorageError where it cannot be renewed.

        One whose time is over, as after a machine was suspended, is renewed first.
        """
        if time.monotonic() - self._renewed > self._mine.lease_s:
            self._renew()
        if self._is_lost:
            raise PipelineBusy(
                f"{self._shown} was taken over by another process, for this one did not renew its lease in "
                "time; what was committed is kept"
            )

    def free(self) -> None:
        """Ends it; where the store does not answer it ends by itself."""
        self._ended.set()
        self._thread.join()
        if not self._is_lost:
            self._mine = replace(self._mine, is_free=True)
            try:
                self._put(self._etag)
            except (Conflict, StorageError):
                self._is_lost = True

    def _read(self) -> tuple[Found | None, _Holder | None]:
        try:
            found = self._store.get(self._name)
        except FileNotFoundError:
            return None, None
        return found, _Holder.from_bytes(found.data)

    def _wait_for_its_end(self, found: Found | None, held: _Holder) -> None:
        """Waits until the holder has let its time pass. Raises PipelineBusy as soon as it renews."""
        assert found is not None
        left = held.lease_s - max(0.0, found.age_s or 0.0)
        seen, end = found.etag, time.monotonic() + left
        while (now := time.monotonic()) < end:
            time.sleep(min(held.lease_s / _LOOKS, end - now))
            again, _ = self._read()
            if again is None or again.etag != seen:
                raise PipelineBusy(
                    f"the pipeline in {self._shown} is being run by {held.who}; wait for it, or stop it: "
                    "what it has committed is kept"
                )

    def _put(self, expected: str) -> None:
        asked = time.monotonic()
        self._etag = self._store.put(self._name, self._mine.to_bytes(), expected)
        self._renewed = asked

    def _beat(self) -> None:
        while not self._is_lost and not self._ended.wait(self._mine.lease_s / 6):
            with contextlib.suppress(StorageError):  # `check` says so when the time is over
                self._renew()

    def _renew(self) -> None:
        with self._guard:
            self._mine = replace(self._mine, beat=self._mine.beat + 1)
            try:
                self._put(self._etag)
            except Conflict:
                self._is_lost = True


def _disk() -> str:
    """The name of this folder of copies, given when it was made."""
    path = roots() / _IDENTITY
    draft = path.with_name(f"{_IDENTITY}.{uuid.uuid4().hex}")
    try:
        roots().mkdir(parents=True, exist_ok=True)
        if not path.exists():
            draft.write_text(draft.suffix[1:], "ascii")
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        return path.read_text("ascii")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}; set {CACHE_VARIABLE}") from error
