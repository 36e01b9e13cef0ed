"""The server's process; ends when its standard input does. `/fault` makes a query go wrong, `/calm` none."""

import argparse
import base64
import gzip
import json
import os
import re
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import chdb
import pyarrow as pa
from backports import zstd

_HTTP_ONLY = {
    "query",
    "database",
    "session_id",
    "session_timeout",
    "session_check",
    "query_id",
    "compress",
    "decompress",
    "wait_end_of_query",
    "client_protocol_version",
    "default_format",
    "enable_http_compression",
    "send_progress_in_http_headers",
    "http_headers_progress_interval_ms",
    "buffer_size",
    "role",
    "user",
    "password",
}
_INSERT = re.compile(rb"\s*INSERT\s+INTO\s.*?\bFORMAT\s+(\w+)\s*$", re.DOTALL | re.IGNORECASE)
_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)
_CODE = re.compile(r"Code: (\d+)")
_AUTHENTICATION_FAILED = 516


class Engine:
    """One ClickHouse in a folder; one query at a time, each with settings of its own."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder)
        self._lock = threading.Lock()
        self._kept = chdb.connect(self._path)
        self.faults: list[dict[str, str]] = []

    def run(self, query: bytes, data: bytes | None, options: Mapping[str, str], format: str) -> bytes:
        """The answer. Raises RuntimeError with ClickHouse's own text."""
        settings = {name: value for name, value in options.items() if name not in _HTTP_ONLY}
        parameters = {name[6:]: settings.pop(name) for name in list(settings) if name.startswith("param_")}
        with self._lock, tempfile.TemporaryDirectory() as folder:
            session = chdb.connect(self._path)
            try:
                session.query(f"USE {quoted(options.get('database') or 'default', '`')}")
                for name, value in settings.items():
                    session.query(f"SET {name} = {quoted(value)}")
                if data is not None:
                    file = Path(folder, "data")
                    file.write_bytes(data)
                    query = _from_file(query, file)
                return session.query(query.decode(), format, params=parameters).bytes() or b""
            finally:
                session.close()

    def fault_of(self, query: bytes) -> str:
        """What shall go wrong with this query, told once."""
        for fault in self.faults:
            if fault["contains"].encode() in query:
                fault["skip"] = str(int(fault["skip"]) - 1)
                if int(fault["skip"]) < 0:
                    self.faults.remove(fault)
                    return fault["kind"]
                return ""
        return ""


def quoted(text: str, mark: str = "'") -> str:
    escaped = text.replace("\\", "\\\\").replace(mark, f"\\{mark}")
    return f"{mark}{escaped}{mark}"


def _from_file(query: bytes, file: Path) -> bytes:
    found = _INSERT.match(query)
    assert found, query[:200]
    head = query[: found.start(1)].rstrip()[: -len("FORMAT")]
    return head + f" FROM INFILE {quoted(str(file))} COMPRESSION 'none' FORMAT ".encode() + found[1]


def _half(data: bytes) -> bytes:
    """The first half of the rows of an Arrow file."""
    table = pa.ipc.open_file(data).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.slice(0, table.num_rows // 2))
    return sink.getvalue().to_pybytes()


def _unpacked(data: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(data)
    if encoding == "zstd":
        return zstd.ZstdDecompressor().decompress(data)
    if encoding == "lz4":
        import lz4.frame

        return lz4.frame.decompress(data)
    assert not encoding, encoding
    return data


def handler_of(engine: Engine, user: str, password: str) -> type[BaseHTTPRequestHandler]:
    """The class that answers requests."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answered(self._body())

        def do_POST(self) -> None:
            self._answered(self._body())

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                pieces = []
                while size := int(self.rfile.readline(), 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                data = b"".join(pieces)
            else:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return _unpacked(data, self.headers.get("Content-Encoding") or "")

        def _answered(self, body: bytes) -> None:
            address = urlsplit(self.path)
            options = dict(parse_qsl(address.query, keep_blank_values=True))
            if address.path == "/ping":
                return self._send(200, b"Ok.\n")
            if address.path == "/fault":
                engine.faults.append(options)
                return self._send(200, b"")
            if address.path == "/calm":
                engine.faults.clear()
                return self._send(200, b"")
            if self.headers.get("Authorization") != expected:
                return self._refused(
                    f"Code: {_AUTHENTICATION_FAILED}. DB::Exception: {user}: Authentication failed: "
                    "password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)",
                    403,
                )
            query, data = options.get("query", "").encode(), None
            if not query:
                query, newline, rest = body.partition(b"\n")
                inserts = newline and _INSERT.match(query)
                query, data = (query, rest) if inserts else (body, None)
            elif _INSERT.match(query):
                data = body
            else:
                query += body
            return self._run(query, data, options)

        def _run(self, query: bytes, data: bytes | None, options: dict[str, str]) -> None:
            fault = engine.fault_of(query)
            if fault == "cut_before":
                return self._cut()
            if fault == "half" and data is not None:
                data = _half(data)
            found = _FORMAT.search(query.decode("utf-8", "replace"))
            format = found[1] if found else options.get("default_format", "TabSeparated")
            try:
                answer = engine.run(query, data, options, format)
            except RuntimeError as error:
                return self._refused(str(error), 404 if "UNKNOWN" in str(error) else 500)
            if fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault:
                return self._cut()
            return self._send(200, answer, {"X-ClickHouse-Format": format} if answer else {})

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.close()

        def _refused(self, text: str, status: int) -> None:
            found = _CODE.search(text)
            headers = {"X-ClickHouse-Exception-Code": found[1] if found else "0"}
            self._send(status, text.encode(), headers)

        def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {
                "X-ClickHouse-Query-Id": str(uuid.uuid4()),
                "X-ClickHouse-Timezone": "UTC",
                "X-ClickHouse-Summary": "{}",
                "Content-Type": "text/plain; charset=UTF-8",
                "Content-Length": str(len(body)),
                **(headers or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--user", default="default")
    parser.add_argument("--password", default="")
    given = parser.parse_args()
    os.environ["TZ"] = "UTC"
    engine = Engine(given.folder)
    server = ThreadingHTTPServer(("127.0.0.1", given.port), handler_of(engine, given.user, given.password))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
