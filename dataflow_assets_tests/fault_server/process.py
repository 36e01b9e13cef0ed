"""Starts the server and speaks with it."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dataflow_assets_tests.fault_server.records import Asked, Stats

_ROOT = Path(__file__).parents[2]
Given = str | Mapping[str, object]


class FaultServer:
    """The server in a process of its own. `url` is the base URL for clients.

    Ends with `close`, with the `with` block, or with this process, however it ends. Without a rule
    that matches, every request is answered with its own content.
    """

    def __init__(self, rules: Path | None = None, port: int = 0) -> None:
        command = [sys.executable, "-m", "dataflow_assets_tests.fault_server", "--port", str(port)]
        command += [] if rules is None else ["--rules", str(rules)]
        paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        ports = json.loads(self.process.stdout.readline() or b"{}")
        assert ports, "the fault server did not start; its error is on standard error"
        self.port, self._control_port = ports["port"], ports["control_port"]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "FaultServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rule(self, *then: Given, **match: object) -> None:
        """Plays `then` in order, the last one for ever, for requests that match; see rules.Rule.

        `rule("reset", "ok", contains="x")`; `rule({"kind": "status", "status": 429}, every=10)`.
        """
        self._post("/control", {**match, "then": list(then)})

    def default(self, kind: str = "ok", **fields: object) -> None:
        """What requests get that no rule matches: `default(delay_s=0.2)`."""
        self._post("/control", {"default": {"kind": kind, **fields}})

    def stats(self) -> Stats:
        """What came in since the last reset."""
        told = self._post("/stats", {})
        assert isinstance(told, dict)
        requests: Sequence[dict] = told.pop("requests")
        return Stats([Asked(**asked) for asked in requests], **told)

    def reset(self) -> None:
        """Forgets rules and records, drops connections, listens again."""
        self._post("/reset", {})

    def refuse(self) -> None:
        """Refuses all connections until `listen`."""
        self._post("/refuse", {})

    def listen(self) -> None:
        """Takes connections again."""
        self._post("/listen", {})

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)

    def _post(self, path: str, body: Mapping[str, object]) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", self._control_port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            told = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != 200:
            raise ValueError(f"the fault server refused {path}: {told['error']['message']}")
        return told
