"""One connection: reads requests, plays what the rules say. The way of a plain answer is kept lean."""

import asyncio
import socket
import struct
from http import HTTPStatus
from time import time
from typing import Protocol, cast

import orjson
import xxhash

from dataflow_assets_tests.fault_server.answers import SILENT, Reply, Request, reply_of
from dataflow_assets_tests.fault_server.records import Asked, content_hash
from dataflow_assets_tests.fault_server.rules import Behaviour

_CONTENT_CHARS = 200
# close() with this linger time sends RST instead of FIN.
_RESET = struct.pack("ii", 1, 0)


class Book(Protocol):
    """What a connection needs of the server."""

    connections: "set[Connection]"

    def opened(self, path: str, head: bytes, body: bytes) -> tuple[Asked, Request, Behaviour]:
        """Writes down a request and chooses its behaviour."""
        ...

    def closed(self, asked: Asked) -> None:
        """The request is no longer in flight."""
        ...

    def control(self, path: str, body: bytes) -> object:
        """Answers what is not of the OpenAI API. Raises KeyError for an unknown path."""
        ...

    def refuse(self, for_s: float | None) -> None:
        """Stops listening for a while, or until `listen`, and resets all connections."""
        ...


class Connection(asyncio.Protocol):
    """One connection of a client; one request at a time."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._received = bytearray()
        self._asked: Asked | None = None
        self._running: asyncio.TimerHandle | asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._book.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._book.connections.discard(self)
        if self._running is not None:
            self._running.cancel()
        self._done(complete=False)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._asked is None:
            self._next()

    def _next(self) -> None:
        """Takes the next request, if it is there as a whole."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end])
        length = _content_length(head)
        if len(self._received) < end + 4 + length:
            return
        body = bytes(self._received[end + 4 : end + 4 + length])
        del self._received[: end + 4 + length]
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        if method == "POST" and path.partition("?")[0].endswith(("/completions", "/embeddings")):
            self._play(path.partition("?")[0], head, body)
        else:
            self._answer_control(path, body)

    def _answer_control(self, path: str, body: bytes) -> None:
        try:
            status, said = 200, self._book.control(path, body)
        except (KeyError, TypeError, ValueError) as error:
            status, said = 400, {"error": {"message": f"{type(error).__name__}: {error}"}}
        self.transport.write(head_of(Reply([made := orjson.dumps(said)], status)) + made)
        self._next()

    def _play(self, path: str, head: bytes, body: bytes) -> None:
        self._asked, request, behaviour = self._book.opened(path, head, body)
        self._asked.kind = str(behaviour["kind"])
        delay = behaviour.get("delay_s", 0)
        if delay:
            later = asyncio.get_running_loop().call_later
            self._running = later(_seconds(self._asked, behaviour), self._act, behaviour, request)
        else:
            self._act(behaviour, request)

    def _act(self, behaviour: Behaviour, request: Request) -> None:
        kind = behaviour["kind"]
        if kind in SILENT:
            self._be_silent(behaviour)
            return
        reply = reply_of(behaviour, request)
        assert self._asked is not None
        self._asked.status = reply.status
        if len(reply.body) == 1 and reply.framing == "length" and reply.end == "keep":
            self.transport.write(head_of(reply) + reply.body[0])
            self._done(complete=True)
            self._next()
        else:
            self._running = asyncio.get_running_loop().create_task(self._send(reply))

    def _be_silent(self, behaviour: Behaviour) -> None:
        if behaviour["kind"] == "refused":
            self._book.refuse(cast("float | None", behaviour.get("for_s", 1.0)))
        if behaviour["kind"] != "hang":
            self.reset()

    async def _send(self, reply: Reply) -> None:
        chunks = [
            b"%x\r\n%s\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece
            for piece in reply.body
        ]
        self.transport.write(head_of(reply))
        if not reply.pause_s:
            chunks = [b"".join(chunks)]
        for chunk in chunks:
            self.transport.write(chunk)
            if reply.pause_s:
                await asyncio.sleep(reply.pause_s)
        if reply.framing == "chunked" and reply.end in ("keep", "close"):
            self.transport.write(b"0\r\n\r\n")
        self._running = None
        self._end(reply)

    def _end(self, reply: Reply) -> None:
        if reply.end == "hang":
            return
        self._done(complete=reply.end == "keep" or (reply.end == "close" and not reply.missing_bytes))
        if reply.end == "reset":
            # What was written must reach the client before the reset does.
            self._running = asyncio.get_running_loop().call_later(0.05, self.reset)
        elif reply.end == "close":
            self.transport.close()
        else:
            self._next()

    def reset(self) -> None:
        """Ends the connection with RST."""
        raw = self.transport.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def _done(self, complete: bool) -> None:
        asked, self._asked = self._asked, None
        if asked is None:
            return
        asked.complete = complete and not self.transport.is_closing()
        asked.seconds = time() - asked.time
        self._book.closed(asked)


def head_of(reply: Reply) -> bytes:
    """Status line and headers."""
    if reply.framing == "length":
        framing = f"Content-Length: {sum(map(len, reply.body)) + reply.missing_bytes}\r\n"
    else:
        framing = "Transfer-Encoding: chunked\r\n" if reply.framing == "chunked" else ""
    more = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    first = f"HTTP/1.1 {reply.status} {phrase}\r\n"
    return f"{first}Content-Type: {reply.type}\r\n{framing}{more}\r\n".encode()


def _seconds(asked: Asked, behaviour: Behaviour) -> float:
    """The delay, up to `jitter_s` more or less: as the call's hash has it, so always the same."""
    delay, jitter = cast(float, behaviour["delay_s"]), cast(float, behaviour.get("jitter_s", 0))
    return delay + jitter * (2 * int(asked.call[:8], 16) / 2**32 - 1) if jitter else delay


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    return int(lower[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


def asked_of(ordinal: int, path: str, body: bytes) -> tuple[Asked, dict[str, object], str]:
    """The record of a request, its body and its content."""
    parsed = orjson.loads(body)
    content = _content(parsed)
    shown, hashed = content[:_CONTENT_CHARS], content_hash(content)
    model = str(parsed.get("model"))
    call = xxhash.xxh3_64_hexdigest(body)
    return Asked(ordinal, time(), path, model, shown, hashed, call), parsed, content


def _content(body: dict[str, object]) -> str:
    messages = body.get("messages")
    if isinstance(messages, list):
        return str(messages[-1]["content"])
    return str(body.get("prompt", body.get("input", "")))
