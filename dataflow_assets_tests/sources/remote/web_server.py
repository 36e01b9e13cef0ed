"""A real web server whose files, headers and faults a test sets."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR

from dataflow_assets_tests.http_servers import listening, url_of


@dataclass
class WebFile:
    """One file; `statuses` are answered first, one a request, `cuts` end bodies after so many bytes."""

    content: bytes
    etag: str | None = '"one"'
    modified: str | None = None
    ranges: bool = True
    head: bool = True
    login: str | None = None
    statuses: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    after_get: Callable[["WebFile"], None] | None = None


@dataclass
class WebServer:
    """The files by path, and the requests that came: method, path, Range."""

    url: str
    files: dict[str, WebFile]
    seen: list[tuple[str, str, str | None]]

    @property
    def ranges(self) -> list[str | None]:
        """The Range of each GET."""
        return [part for method, _, part in self.seen if method == "GET"]


@contextmanager
def web_server() -> Iterator[WebServer]:
    """A server on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    found = WebServer(url_of(server), {}, [])
    server.found = found  # type: ignore[attr-defined]
    with listening(server):
        yield found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        found: WebServer = self.server.found  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        found.seen.append((self.command, path, self.headers.get("Range")))
        file = found.files.get(path)
        if file is None:
            return self._refuse(404)
        if not with_body and not file.head:
            return self._refuse(405)
        if with_body and file.statuses:
            return self._refuse(file.statuses.pop(0))
        login = f"Basic {base64.b64encode((file.login or '').encode()).decode()}"
        if file.login and self.headers.get("Authorization") != login:
            return self._refuse(401)
        return self._give(file, with_body)

    def _give(self, file: WebFile, with_body: bool) -> None:
        body, asked = file.content, self.headers.get("Range")
        same = self.headers.get("If-Range") in (None, file.etag or file.modified)
        partial = asked is not None and file.ranges and same
        if partial:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), int(last or len(body) - 1)
            whole, body = len(body), body[start : end + 1]
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{whole}")
        if file.etag:
            self.send_header("ETag", file.etag)
        if file.modified:
            self.send_header("Last-Modified", file.modified)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self._send(file, body)

    def _send(self, file: WebFile, body: bytes) -> None:
        cut = file.cuts.pop(0) if file.cuts else None
        with suppress(BrokenPipeError, ConnectionResetError):  # a client may leave, as one that only looks
            self.wfile.write(body if cut is None else body[:cut])
        if file.after_get is not None:
            file.after_get(file)
        if cut is not None:
            self.wfile.flush()
            self.connection.shutdown(SHUT_RDWR)
            self.close_connection = True

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
