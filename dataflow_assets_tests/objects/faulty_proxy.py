"""A proxy in front of the server that fails every so often, as networks and stores do."""

import contextlib
import http.client
import itertools
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from dataflow_assets_tests.http_servers import listening

FAULTS = ("503", "500", "cut_before", "cut_after", "cut_body")
_ERROR = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"


class FaultyProxy(ThreadingHTTPServer):
    """Every `every`-th request meets the next of the faults; `met` counts them."""

    daemon_threads = True

    def __init__(self, endpoint: str, every: int, faults: tuple[str, ...] = FAULTS) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(endpoint)
        self.met = dict.fromkeys(faults, 0)
        self._every = every
        self._faults = itertools.cycle(faults)
        self._requests = 0
        self._guard = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_fault(self) -> str | None:
        with self._guard:
            self._requests += 1
            if self._requests % self._every:
                return None
            fault = next(self._faults)
            self.met[fault] += 1
            return fault


class _Handler(BaseHTTPRequestHandler):
    server: FaultyProxy  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"  # else nobody answers `Expect: 100-continue`, and a put waits a second

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.next_fault()
        if fault in ("503", "500"):
            self._answer(int(fault), {}, _ERROR)
        elif fault != "cut_before":
            status, headers, data = self._asked(body)
            if fault != "cut_after":
                self._answer(status, headers, data, is_cut=fault == "cut_body")
        self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.server.target.netloc)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def _answer(self, status: int, headers: dict[str, str], data: bytes, is_cut: bool = False) -> None:
        self.send_response_only(status)
        kept = {name: value for name, value in headers.items() if name.lower() not in _OWN}
        for name, value in {**kept, "Content-Length": str(len(data)), "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data[: len(data) // 2] if is_cut else data)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


_OWN = {"content-length", "connection", "transfer-encoding", "server"}


@contextlib.contextmanager
def faulty_proxy(endpoint: str, every: int, faults: tuple[str, ...] = FAULTS) -> Iterator[FaultyProxy]:
    """A proxy that listens, for as long as the test is in it."""
    with listening(FaultyProxy(endpoint, every, faults)) as proxy:
        yield proxy
