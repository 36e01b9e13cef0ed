"""Starts the server, speaks with it, and kills it."""

import http.client
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_ROOT = Path(__file__).parents[2]
USER = "loader"
PASSWORD = "pa55-w0rd/@:%"


class ClickHouse:
    """The server in a process of its own; ends with `close`, or with this process, however it ends.

    `url` is what the command takes; its password is `PASSWORD`, to be given by the environment.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._client: Client | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        """Starts it on its port and its data."""
        command = [sys.executable, "-m", "dataflow_assets_tests.clickhouse_server"]
        command += ["--folder", str(Path(self._folder.name, "data")), "--port", str(self.port)]
        command += ["--user", USER, "--password", PASSWORD]
        paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline() or b"{}")
        assert told, "the ClickHouse server did not start; its error is on standard error"
        self.port = told["port"]

    @property
    def url(self) -> str:
        """Without a database."""
        return f"clickhouse://{USER}@127.0.0.1:{self.port}"

    def ask(self, query: str) -> list[tuple]:
        """The rows of a query or command, asked by a plain client of clickhouse-connect."""
        import clickhouse_connect

        if self._client is None:
            self._client = clickhouse_connect.get_client(
                host="127.0.0.1", port=self.port, username=USER, password=PASSWORD
            )
        if query.split()[0] in ("SELECT", "SHOW", "DESCRIBE"):
            return [tuple(row) for row in self._client.query(query).result_rows]
        self._client.command(query)
        return []

    def fault(self, kind: str, contains: str = "INSERT", skip: int = 0) -> None:
        """One query with these words goes wrong, after `skip` that do not.

        `cut_before`: never run; `cut_after`: run, never answered; `half`: run with half of its rows, never
        answered; `kill`: run, and the server is gone.
        """
        self._post("/fault?" + urlencode({"kind": kind, "contains": contains, "skip": skip}))

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        self._post("/calm")

    def _post(self, path: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path)
            assert connection.getresponse().status == 200
        finally:
            connection.close()

    def restart(self) -> None:
        """Kills it, where it is not dead yet, and starts it on the same port and data."""
        self._kill()
        self.start()

    def close(self) -> None:
        """Ends the process and removes its data."""
        self._kill()
        self._folder.cleanup()

    def _kill(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self.process.kill()
        self.process.wait(10)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def needs_chdb() -> None:
    """Skips the test where there is no engine; in CI it fails."""
    missing = [name for name in ("chdb", "clickhouse_connect") if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI"):
        pytest.fail(f"{' and '.join(missing)} not installed; CI needs it, it is in the extra `test`")
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: nothing of ClickHouse is tested")
