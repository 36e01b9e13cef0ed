"""A small server that speaks as much of the Hub's API as reading a data set needs; commits are folders."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from dataflow_assets_tests.http_servers import listening, url_of


@dataclass
class Hub:
    """One data set: its commits (name of 40 digits to folder), and which of them is `main`."""

    url: str
    name: str
    commits: dict[str, Path] = field(default_factory=dict)
    main: str = ""
    fetched: list[str] = field(default_factory=list)


@contextmanager
def hub_server(name: str) -> Iterator[Hub]:
    """The server on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    hub = Hub(url_of(server), name)
    server.hub = hub  # type: ignore[attr-defined]
    with listening(server):
        yield hub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        return self.server.hub  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        asked = json.loads(sent) if sent.startswith("{") else parse_qs(sent)
        self._answer(asked.get("paths", []))

    def _answer(self, asked: list[str] | str = ()) -> None:
        path = unquote(urlsplit(self.path).path)
        api, files = f"/api/datasets/{self.hub.name}", f"/datasets/{self.hub.name}/resolve/"
        if path.startswith(files):
            revision, _, file = path.removeprefix(files).partition("/")
            return self._file(self._commit(revision), file)
        if path != api and not path.startswith(f"{api}/"):
            return self._json({"error": "Repository not found"}, 404, "RepoNotFound")
        what, _, rest = path.removeprefix(api).strip("/").partition("/")
        commit = self._commit(rest.partition("/")[0] or "main")
        if commit not in self.hub.commits:
            return self._json({"error": "Invalid rev id"}, 404, "RevisionNotFound")
        if what == "tree":
            below = rest.partition("/")[2]
            return self._json([each for each in self._entries(commit) if each["path"].startswith(below)])
        if what == "paths-info":
            wanted = [asked] if isinstance(asked, str) else asked
            return self._json([each for each in self._entries(commit) if each["path"] in wanted])
        siblings = [{"rfilename": each["path"]} for each in self._entries(commit)]
        return self._json(
            {"id": self.hub.name, "sha": commit, "siblings": siblings, "private": False, "tags": []}
        )

    def _commit(self, revision: str) -> str:
        return self.hub.main if revision == "main" else revision

    def _entries(self, commit: str) -> list[dict]:
        folder = self.hub.commits[commit]
        found = []
        for path in sorted(folder.rglob("*")):
            entry = {"path": path.relative_to(folder).as_posix(), "oid": "0" * 40, "size": 0}
            if path.is_file():
                content = path.read_bytes()
                entry |= {"type": "file", "oid": hashlib.sha1(content).hexdigest(), "size": len(content)}
            found.append({"type": "directory", **entry})
        return found

    def _file(self, commit: str, name: str) -> None:
        path = self.hub.commits.get(commit, Path("/nowhere")) / name
        if not path.is_file():
            return self._json({"error": "Entry not found"}, 404, "EntryNotFound")
        content = path.read_bytes()
        tag = hashlib.sha1(content).hexdigest()
        if self.command == "GET":
            self.hub.fetched.append(f"{commit[:1]}/{name}")
        whole, status, start = len(content), 200, 0
        if asked := self.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, status = int(first), 206
            content = content[start : int(last or whole) + 1]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{start + len(content) - 1}/{whole}")
        self.send_header("X-Repo-Commit", commit)
        self.send_header("ETag", f'"{tag}"')
        self._send(content)

    def _json(self, value: object, status: int = 200, code: str = "") -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Type", "application/json")
        self._send(json.dumps(value).encode())

    def _send(self, content: bytes) -> None:
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
