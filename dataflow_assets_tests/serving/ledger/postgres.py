"""A real PostgreSQL server of its own, on a free port, in a temporary folder."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

USER = "postgres"
PASSWORD = "pa55-w0rd"


def programs() -> Path:
    """The folder of `initdb` and `pg_ctl`; without one the test is skipped, in CI it fails."""
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if folders:
        return folders[-1]
    if os.environ.get("CI"):
        pytest.fail("PostgreSQL is not installed; CI needs it, apt-get install postgresql")
    pytest.skip("PostgreSQL is not installed")


def _run(folder: Path, *command: str | Path) -> None:
    """As the user postgres where we are root, which PostgreSQL refuses."""
    user = USER if os.getuid() == 0 else None
    done = subprocess.run(command, cwd=folder, user=user, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr + done.stdout


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The URL of its database."""
    bin = programs()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, USER)
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        data, password = folder / "data", f"--pwfile={folder / 'password'}"
        _run(
            folder,
            bin / "initdb",
            "-D",
            data,
            "-U",
            USER,
            "--auth=scram-sha-256",
            password,
            "-N",
            "-E",
            "UTF8",
        )
        port = _free_port()
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        _run(folder, bin / "pg_ctl", "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
        try:
            yield f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            _run(folder, bin / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
