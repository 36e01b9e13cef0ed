"""Sends one request over pooled HTTP connections, and reads whatever comes back."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.calls import CallFailed
from dataflow_assets.serving.openai_answers import MAX_RAW_CHARS, Reply
from dataflow_assets.serving.openai_request import ROUTES
from dataflow_assets.serving.openai_stream import is_at_end
from dataflow_assets.serving.spec import OpenAISpec

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

MAX_BODY_BYTES = 64 * 1024 * 1024
_AFTER_END_S = 1.0
_KEEP_ALIVE_S = 30.0
_TAIL_BYTES = 64


class Address(NamedTuple):
    """Where requests go: `url` is sent to, `shown` is the same without credentials and query."""

    url: str
    shown: str


def addresses(spec: OpenAISpec) -> dict[str, Address]:
    """The address of each route below the base URL, whose query is kept. Raises ConfigError."""
    parts = urlsplit(spec.base_url.strip())
    _check(parts, spec)
    path = parts.path.rstrip("/")
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
    return {
        route: Address(
            parts._replace(path=path + route, fragment="").geturl(), bare._replace(path=path + route).geturl()
        )
        for route in ROUTES.values()
    }


def secrets_of(spec: OpenAISpec) -> list[str]:
    """Every value that must not be shown: key, headers, what the base URL and the proxy's hold."""
    found = [value.get_secret_value().strip() for value in spec.headers.values()]
    if spec.api_key is not None:
        found.append(spec.api_key.get_secret_value().strip())
    parts = urlsplit(spec.base_url.strip())
    for url in (parts, urlsplit(_proxy(parts) or "")):
        found += [url.password or "", unquote(url.password or "")]
        found += [pair.partition("=")[2] for pair in url.query.split("&")]
    bearers = [secret.partition(" ")[2] for secret in found]
    return found + bearers


def _check(parts: SplitResult, spec: OpenAISpec) -> None:
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
    where = f"serving with model {spec.model}: base_url {shown}"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{where}: expected http://… or https://… with a host, e.g. http://localhost:8000/v1"
        )
    route = next((route for route in ROUTES.values() if parts.path.rstrip("/").endswith(route)), None)
    if route is not None:
        raise ConfigError(f"{where}: ends with {route}, which is added; give the part before it")
    if spec.api_key is not None and parts.username is not None:
        raise ConfigError(f"{where}: has a user name beside api_key; give one of them")
    proxy = urlsplit(_proxy(parts) or "http:")
    if proxy.scheme not in ("http", "https"):
        raise ConfigError(f"{where}: the environment names a {proxy.scheme} proxy; only http and https work")
    values = [value.get_secret_value() for value in (*spec.headers.values(), *filter(None, [spec.api_key]))]
    if any(not value.strip().isprintable() for value in values):
        raise ConfigError(f"{where}: api_key or a header has a control character; give it in one line")


def headers_of(spec: OpenAISpec) -> dict[str, str]:
    """The headers of every request; those of the spec come last, so they win."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if spec.api_key is not None and spec.api_key.get_secret_value().strip():
        headers["Authorization"] = f"Bearer {spec.api_key.get_secret_value().strip()}"
    given = {name.lower() for name in spec.headers}
    kept = {name: value for name, value in headers.items() if name.lower() not in given}
    return kept | {name: value.get_secret_value().strip() for name, value in spec.headers.items()}


def open_session(spec: OpenAISpec) -> "ClientSession":
    """A pool of connections for the running event loop."""
    import aiohttp

    limits = aiohttp.ClientTimeout(
        total=spec.total_timeout_s, sock_connect=spec.connect_timeout_s, sock_read=spec.read_timeout_s
    )
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=spec.concurrency, keepalive_timeout=_KEEP_ALIVE_S),
        headers=headers_of(spec),
        timeout=limits,
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=_proxy(urlsplit(spec.base_url.strip())),
    )


def _proxy(parts: SplitResult) -> str | None:
    """The proxy of the environment for this address (`trust_env` of aiohttp asks a thread each time)."""
    host = parts.hostname or ""
    return None if not host or proxy_bypass(host) else getproxies().get(parts.scheme)


async def exchange(
    session: "ClientSession", address: Address, body: bytes, limits: Mapping[str, float]
) -> Reply:
    """Posts the body once; redirects are not followed. `limits` names the time limits for messages.

    Raises CallFailed: `timeout`, `connection`, or `bad_response` for what is not HTTP or too much.
    """
    import aiohttp

    received = bytearray()
    try:
        async with session.post(address.url, data=body, allow_redirects=False) as response:
            whole = await _read(response, received, address)
            return Reply(address.shown, response.status, response.headers, bytes(received), whole)
    except asyncio.TimeoutError as error:
        raise CallFailed("timeout", _too_slow(address, error, limits), raw=_raw(received)) from None
    except (aiohttp.ClientConnectionError, ssl.SSLError, OSError) as error:
        said = f"{address.shown}: no answer, {_said(error)}; check base_url and whether the server is up"
        raise CallFailed("connection", said) from None
    except aiohttp.ClientError as error:
        said = f"{address.shown}: what came is not HTTP: {_said(error)}"
        raise CallFailed("bad_response", said, raw=_raw(received)) from None


async def _read(response: "ClientResponse", received: bytearray, address: Address) -> bool:
    """Reads the body into `received`. Says whether it ended as it should."""
    import aiohttp

    try:
        while chunk := await response.content.readany():
            received += chunk
            if len(received) > MAX_BODY_BYTES:
                said = f"{address.shown}: the answer is larger than {MAX_BODY_BYTES >> 20} MiB"
                raise CallFailed("bad_response", said, status=response.status, raw=_raw(received))
            if is_at_end(received[-_TAIL_BYTES:]):
                await _await_end(response)
                return True
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, asyncio.TimeoutError):
            raise
        return False
    return True


async def _await_end(response: "ClientResponse") -> None:
    """After the mark of the end: the connection can be used again if it ends now, else it is closed."""
    import aiohttp

    if not response.content.at_eof():
        try:
            await asyncio.wait_for(response.content.readany(), _AFTER_END_S)
        except (asyncio.TimeoutError, aiohttp.ClientError, OSError):
            response.close()


def _raw(received: bytearray) -> str:
    return bytes(received[: 4 * MAX_RAW_CHARS]).decode(errors="replace")[:MAX_RAW_CHARS]


def _said(error: BaseException) -> str:
    """The error without what it knows of the request."""
    import aiohttp

    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return f"{type(error).__name__}: {' '.join(said.split())[:200]}"


def _too_slow(address: Address, error: BaseException, limits: Mapping[str, float]) -> str:
    import aiohttp

    name, what = "total_timeout_s", "no whole answer"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        name, what = "connect_timeout_s", "no connection"
    elif isinstance(error, aiohttp.SocketTimeoutError):
        name, what = "read_timeout_s", "nothing came"
    return f"{address.shown}: {what} within {limits[name]:g} s ({name})"
