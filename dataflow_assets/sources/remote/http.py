"""Files of a web server, by HTTP alone: no folders and no globs."""

import base64
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from dataflow_assets.errors import SourceError
from dataflow_assets.serving.retry_after import retry_after_s
from dataflow_assets.sources.remote.store import RemoteFile, Restart, Unreachable
from dataflow_assets.sources.remote.urls import shown_url

TIMEOUT_S = 60.0
_BLOCK_BYTES = 2**20
_SAFE = "/:?#[]@!$&'()*+,;=%~"
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_NO_HEAD = {400, 403, 404, 405, 501}


class WebStore:
    """Asks web servers; a partial answer is taken where it is of the same version of the file."""

    def found(self, url: str) -> list[RemoteFile]:
        """The file of this URL."""
        return [self.looked_at(RemoteFile(url, shown_url(url), {}, None))]

    def looked_at(self, file: RemoteFile) -> RemoteFile:
        """What HEAD tells; where a server has no HEAD, what the beginning of an answer tells."""
        try:
            with _answer(file, "HEAD", {}) as answer:
                return _told(file, answer)
        except _Refused as refused:
            if refused.status not in _NO_HEAD:
                raise
        with _answer(file, "GET", {"Range": "bytes=0-0"}) as answer:
            return _told(file, answer)

    def blocks(self, file: RemoteFile, start: int) -> Iterator[bytes]:
        """The bytes from `start` on, of this version of the file."""
        headers = {"Range": f"bytes={start}-", **_if_same(file)} if start else {}
        with _answer(file, "GET", headers) as answer:
            if start and not _begins_at(answer, start):
                raise Restart
            if file.facts and _told(file, answer).facts != file.facts:
                raise SourceError(f"{file.name} changed while it was read; run again when it is complete")
            left = int(length) if (length := answer.headers.get("Content-Length")) else None
            while block := answer.read(_BLOCK_BYTES):
                left = None if left is None else left - len(block)
                yield block
            if left:
                raise Unreachable(f"source {file.name}: the answer ended {left} bytes too early")


class _Refused(SourceError):
    """The server said no, and will say so again."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Redirect(HTTPRedirectHandler):
    """Follows redirects; a password goes to the host that it was given for, and to no other."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            request.remove_header("Authorization")
        return request


_opener = build_opener(_Redirect)


@contextmanager
def _answer(file: RemoteFile, method: str, headers: Mapping[str, str]) -> Iterator[HTTPResponse]:
    try:
        with _opener.open(_request(file.url, method, headers), timeout=TIMEOUT_S) as answer:
            yield answer
    except HTTPError as error:
        with error:
            raise _of_status(file, error) from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(f"source {file.name}: {type(reason).__name__}: {reason}") from error


def _request(url: str, method: str, headers: Mapping[str, str]) -> Request:
    """The request; user and password of the URL go into a header."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    plain = urlunsplit((parts.scheme, place, quote(parts.path, _SAFE), quote(parts.query, _SAFE), ""))
    request = Request(plain, method=method, headers={"Accept-Encoding": "identity", **headers})
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    return request


def _of_status(file: RemoteFile, error: HTTPError) -> SourceError:
    told = f"source {file.name}: the server answered {error.code} {error.reason}"
    if error.code in _PASSING:
        return Unreachable(told, retry_after_s(dict(error.headers.items()), time.time()))
    if error.code in (404, 410):
        return _Refused(f"{told}; expected a file. Correct the URL", error.code)
    if error.code in (401, 403):
        return _Refused(
            f"{told}; expected a file that may be read. Give `https://${{USER}}:${{PASSWORD}}@…`, or a "
            "signed URL that still holds",
            error.code,
        )
    return _Refused(f"{told}; expected a file", error.code)


def _told(file: RemoteFile, answer: HTTPResponse) -> RemoteFile:
    """The file with what the answer's headers say of it."""
    size = _size(answer)
    facts: dict[str, object] = {"size": size}
    if tag := answer.headers.get("ETag"):
        facts["etag"] = tag
    elif date := answer.headers.get("Last-Modified"):
        facts["modified"] = date
    return file._replace(facts=facts, size=size, certain=len(facts) > 1)


def _size(answer: HTTPResponse) -> int | None:
    """The bytes of the whole file."""
    if answer.status == 206:
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return int(total) if total.isdecimal() else None
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _begins_at(answer: HTTPResponse, start: int) -> bool:
    return answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _if_same(file: RemoteFile) -> dict[str, str]:
    """The header that asks for a part only of this version; a weak ETag may not be used for it."""
    validator = file.facts.get("etag") or file.facts.get("modified")
    return {"If-Range": str(validator)} if validator and not str(validator).startswith("W/") else {}
