"""The plugin that shows a run to Prometheus: a text file for node_exporter, an endpoint, or both."""

import re
import threading
import time
from pathlib import Path
from wsgiref.simple_server import WSGIServer

from dataflow_assets.errors import ConfigError
from dataflow_assets.optional_packages import require
from dataflow_assets.plugins.events import (
    BatchCommitted,
    PipelineEnded,
    PipelineStarted,
    StepEnded,
    StepStarted,
)
from dataflow_assets.progress import say

_WRITE_EVERY_S = 1.0
_HERE = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>.*):)?(?P<port>[0-9]{1,5})")


class MetricsPlugin:
    """Writes the metrics of a run to `file` and serves them at `port` while it runs.

    `file` is written at most once a second as batches are committed, and at the end; its content comes
    in by a rename, so a reader never sees half of it. A folder gets `dataflow_<pipeline>.prom`.
    Relative paths count from the pipeline's file. `port` is a number or `HOST:PORT`; the endpoint
    answers this machine alone unless a host is given, and ends with the run. A port that is taken
    stops nothing: it is said, and the file is still written.
    """

    def __init__(self, file: str | None = None, port: int | str | None = None) -> None:
        """Raises ConfigError where neither is given, for what is no port, and without the package."""
        if not file and port is None:
            raise ConfigError("there is neither a `file` nor a `port`; give one of them, or both")
        require({"prometheus_client": "metrics"}, "plugin 'metrics'")
        self._file_setting = file
        self._address = None if port is None else address_of(port)
        self._file: Path | None = None
        self._server: tuple[WSGIServer, threading.Thread] | None = None
        self._written_at = 0.0

    def on_pipeline_start(self, started: PipelineStarted) -> None:
        """Opens the endpoint and writes the file for the first time."""
        from dataflow_assets.metrics.run_metrics import RunMetrics

        self._metrics = RunMetrics()
        self._metrics.start(started)
        if self._file_setting:
            self._file = _file_of(self._file_setting, started)
            self._file.parent.mkdir(parents=True, exist_ok=True)
        self._open()
        self._write()

    def on_step_start(self, started: StepStarted) -> None:
        """The step's counters are there from now on."""
        self._metrics.start_step(started)

    def on_batch(self, batch: BatchCommitted) -> None:
        """Counts a batch."""
        self._metrics.add(batch)
        if time.monotonic() - self._written_at >= _WRITE_EVERY_S:
            self._write()

    def on_step_end(self, ended: StepEnded) -> None:
        """Writes the numbers of the whole step."""
        self._metrics.end_step(ended)
        self._write()

    def on_pipeline_end(self, ended: PipelineEnded) -> None:
        """Writes the last numbers and closes the endpoint."""
        self._metrics.end(ended)
        self._write()
        self._close()

    def _open(self) -> None:
        if self._address is None:
            return
        from prometheus_client import start_http_server

        host, port = self._address
        try:
            self._server = start_http_server(port, addr=host, registry=self._metrics.registry)
        except OSError as error:
            say(
                f"metrics cannot be served at {host}:{port}: {error.strerror or error}; the run goes on "
                "without; give another port, 0 for any that is free"
            )
            return
        if port == 0:
            say(f"metrics are served at http://{host}:{self._server[0].server_port}/metrics")

    def _write(self) -> None:
        if self._file is None:
            return
        from prometheus_client import write_to_textfile

        try:
            write_to_textfile(str(self._file), self._metrics.registry)
        except BaseException:  # raised again: the endpoint is not left open
            self._close()
            raise
        self._written_at = time.monotonic()

    def _close(self) -> None:
        if self._server is None:
            return
        server, thread = self._server
        self._server = None
        server.shutdown()
        server.server_close()
        thread.join()


def address_of(port: int | str) -> tuple[str, int]:
    """Host and port of `9464`, `0.0.0.0:9464` or `[::]:9464`. Raises ConfigError."""
    match = _ADDRESS.fullmatch(str(port))
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(f"{str(port)!r} is no port; expected 0 to 65535, or `HOST:PORT`")
    return (match["host"] or _HERE).strip("[]"), int(match["port"])


def _file_of(setting: str, started: PipelineStarted) -> Path:
    path = started.work.pipeline.base_dir / Path(setting).expanduser()
    if setting.endswith("/") or path.is_dir():
        return path / f"dataflow_{started.pipeline}.prom"
    return path
