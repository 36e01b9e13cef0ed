"""A real MariaDB server of its own, on a free port, in a temporary folder, as an unprivileged user."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PASSWORD = "pa55-w0rd"
_STARTS_WITHIN_S = 30
_SETUP = f"""\
CREATE DATABASE corpora;
CREATE USER writer@localhost IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO writer@localhost;
"""


def _program(name: str) -> str:
    """Its path; without one the test is skipped, in CI it fails."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None and os.environ.get("CI"):
        pytest.fail(f"MariaDB ({name}) is not installed; CI needs it, apt-get install mariadb-server")
    if found is None:
        pytest.skip(f"MARIADB IS NOT TESTED: {name} is not installed; apt-get install mariadb-server")
    return found


def _user() -> str | None:
    """Whom to run as: MariaDB refuses root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "mysql" if "mysql" in names else "nobody"


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The URL of its database."""
    daemon, install = _program("mariadbd"), _program("mariadb-install-db")
    user = _user()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        data, own, port = folder / "data", folder / "tmp", _free_port()
        data.mkdir()
        own.mkdir()
        # a server that starts removes the temporary tables of all others in its folder of them
        environment = {**os.environ, "TMPDIR": str(own)}
        (folder / "setup.sql").write_text(_SETUP)
        if user:
            folder.chmod(0o755)
            shutil.chown(data, user)
            shutil.chown(own, user)
        made = subprocess.run(
            [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"],
            cwd=folder,
            env=environment,
            user=user,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        options = [
            f"--datadir={data}",
            f"--socket={data}/socket",
            f"--pid-file={data}/pid",
            f"--port={port}",
            "--bind-address=127.0.0.1",
            f"--init-file={folder}/setup.sql",
            "--innodb-flush-log-at-trx-commit=2",
        ]
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                [daemon, "--no-defaults", *options], cwd=data, env=environment, user=user, stderr=log
            )
        try:
            url = f"mysql://writer:{PASSWORD}@127.0.0.1:{port}/corpora"
            _wait(process, port, folder / "log")
            yield url
        finally:
            process.kill()
            process.wait(30)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    import pymysql

    end = time.monotonic() + _STARTS_WITHIN_S
    while True:
        assert process.poll() is None and time.monotonic() < end, log.read_text(errors="replace")[-2000:]
        try:
            pymysql.connect(
                host="127.0.0.1", port=port, user="writer", password=PASSWORD, database="corpora"
            ).close()
            return
        except pymysql.err.OperationalError:
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
