"""The one connection of this process to Ray: who needs it holds it, and with the last holder it ends."""

import atexit
import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dataflow_assets.errors import ConfigError
from dataflow_assets.optional_packages import require

ADDRESS_VARIABLE = "RAY_ADDRESS"
NAMESPACE = "dataflow_assets"
_log = logging.getLogger(__name__)
_REACH_S = 5.0
# Replicas would run at nice 15; a CPU replica's view of GPUs is set by us; no figures are sent home.
_ENVIRONMENT = {
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class RaySettings:
    """Which Ray, and how it is started where it is our own.

    `address` is `local` (a cluster of this process, on this machine), `auto`, `host:port` or
    `ray://host:port`; by default what RAY_ADDRESS says, else `local`. `init` are further arguments of
    `ray.init`. With `autoscaling` a request is not checked against the nodes that are there now.
    `is_there` says that somebody else connected this process.
    """

    address: str | None = None
    init: Mapping[str, object] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    autoscaling: bool = False
    is_there: bool = False

    @property
    def resolved_address(self) -> str:
        """The address that counts now."""
        return self.address or os.environ.get(ADDRESS_VARIABLE) or "local"


def require_ray() -> None:
    """Raises ConfigError where the package is not installed."""
    require({"ray": "ray"}, "a step with replicas")


_guard = threading.RLock()
_holders = 0
_owner: "_Owner | None" = None


def hold() -> None:
    """Keeps the connection, once there is one, until `release`."""
    global _holders
    with _guard:
        _holders += 1


def release() -> None:
    """Gives it up; the last holder's ends it, and a cluster of our own with it."""
    global _holders
    with _guard:
        _holders -= 1
        if not _holders:
            _disconnect()


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Holds the connection for the time being."""
    hold()
    try:
        yield
    finally:
        release()


def nodes() -> list[dict[str, float]]:
    """The resources of each node of the cluster."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def connect(settings: RaySettings) -> None:
    """Connects, where nobody has. Raises ConfigError where that cannot be done."""
    global _owner
    require_ray()
    import ray

    with _guard:
        if _owner is None and not ray.is_initialized():
            if settings.is_there:
                raise ConfigError("the resource `ray` did not connect this process to its cluster")
            _owner = _Owner(settings)
            try:
                _owner.connect()
            except BaseException:
                _owner = None
                raise
        elif _owner is not None and not settings.is_there and _owner.address != settings.resolved_address:
            raise ConfigError(
                f"this process is connected to Ray at {_owner.address!r}, it cannot be at "
                f"{settings.resolved_address!r} too; give both the same address"
            )


def is_connected() -> bool:
    """Whether this process is connected to Ray, by us or by somebody else."""
    if "ray" not in sys.modules:
        return False
    import ray

    return ray.is_initialized()


@atexit.register
def _disconnect() -> None:
    global _owner
    with _guard:
        owner, _owner = _owner, None
    if owner is not None:
        owner.disconnect()


class _Owner:
    """A thread that connects, and lives until the connection ends.

    A thread of its own for two reasons: the processes of a local cluster are killed by the kernel
    when the thread that started them ends, whatever ends it; and outside of the main thread Ray
    leaves the signals alone, which are held while a batch is in hand.
    """

    def __init__(self, settings: RaySettings) -> None:
        self.address = settings.resolved_address
        self._settings = settings
        self._is_connected = threading.Event()
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._own, name="ray", daemon=True)

    def connect(self) -> None:
        _raise_if_nobody_listens(self.address)
        self._thread.start()
        self._is_connected.wait()
        if self._error is not None:
            raise ConfigError(
                f"Ray at {self.address!r} cannot be reached: {type(self._error).__name__}: {self._error}"
            ) from self._error

    def disconnect(self) -> None:
        self._end.set()
        self._thread.join()

    def _own(self) -> None:
        import ray

        try:
            arguments = self._arguments()
            if not arguments["log_to_driver"]:
                _silence_raylets()
            ray.init(address=self.address, **arguments)
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            self._error = error
            return
        finally:
            self._is_connected.set()
        self._end.wait()
        ray.shutdown()

    def _arguments(self) -> dict:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if self._settings.token is not None:
            os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=self._settings.token)
        ours = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
        if self.address == "local":
            ours["include_dashboard"] = False
        return {**ours, **self._settings.init}


def _raise_if_nobody_listens(address: str) -> None:
    """Raises ConfigError; Ray itself would end this process after a minute."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
    except OSError as error:
        raise ConfigError(
            f"Ray at {address!r} cannot be reached: {error}; is it running, and is that its port?"
        ) from error


def _silence_raylets() -> None:
    """Keeps Ray from printing a paragraph for each process that died, which no setting of Ray does.

    The deaths are counted in the metadata of the batch.
    """
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *data, **options: _log.debug("%s", data)
