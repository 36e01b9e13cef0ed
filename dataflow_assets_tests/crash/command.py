"""The real command in a process of its own, with or without a driver that kills it."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

PACKAGE_ROOT = Path(__file__).parents[2]
LIMIT_S = 240
DRIVER = "dataflow_assets_tests.crash.driver"
_LAST_WORDS_S = 10


class Finished(NamedTuple):
    """How a command ended; `code` is negative where a signal killed it."""

    code: int
    out: str
    err: str

    @property
    def is_clean(self) -> bool:
        """Whether it told its errors as lines, without a traceback."""
        return "Traceback" not in self.out + self.err


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of this process without Dagster's and our own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "DATAFLOW"))}
    paths = [str(PACKAGE_ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), **(extra or {})}


class Running(subprocess.Popen):
    """A process whose output is read while it runs; orphans that hold its pipes keep nobody waiting."""

    def __init__(self, arguments: list[str], **popen: object) -> None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        super().__init__(arguments, **{**popen, **pipes})  # pyright: ignore[reportArgumentType, reportCallIssue]
        self._chunks: tuple[list[bytes], list[bytes]] = ([], [])
        sources = zip((self.stdout, self.stderr), self._chunks, strict=True)
        self._readers = [threading.Thread(target=_read, args=source, daemon=True) for source in sources]
        for reader in self._readers:
            reader.start()

    def texts(self) -> list[str]:
        """What it has written so far to standard output and standard error."""
        return [b"".join(chunks).decode() for chunks in self._chunks]

    def wait_for_output(self) -> None:
        """Waits for the end of its output, though not for orphans."""
        for reader in self._readers:
            reader.join(_LAST_WORDS_S)


def _read(pipe: IO[bytes], chunks: list[bytes]) -> None:
    with pipe:
        while chunk := os.read(pipe.fileno(), 1 << 16):
            chunks.append(chunk)


def start(
    folder: Path, *arguments: str, kill: str | None = None, driver: str = DRIVER, **popen: object
) -> Running:
    """The command begun in `folder`; `kill` is `POINT:N` of the driver, by default `driver.py`."""
    module = ["dataflow_assets"] if kill is None else [driver, kill]
    popen = {"env": environment(), **popen}
    return Running([sys.executable, "-m", *module, *arguments], cwd=folder, **popen)


def finish(process: Running, limit_s: float = LIMIT_S) -> Finished:
    """Waits for the command's end."""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"still running after {limit_s} s: {process.texts()}") from None
    process.wait_for_output()
    return Finished(process.returncode, *process.texts())


def run(folder: Path, *arguments: str, kill: str | None = None, **popen: object) -> Finished:
    """`dataflow-assets run four.yaml` in `folder`, to its end or to where the driver kills it."""
    return finish(start(folder, "run", "four.yaml", *arguments, kill=kill, **popen))


def command(folder: Path, *arguments: str) -> Finished:
    """Any command of `dataflow-assets`, to its end."""
    return finish(start(folder, *arguments))


def file_size_limit(limit_bytes: int):
    """For `preexec_fn`: no file can grow past this, as on a full disk."""
    return partial(_limit_files, limit_bytes)


def _limit_files(limit_bytes: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
