"""What is sent for each behaviour: status, headers, body, and how it is put on the wire."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from time import time
from typing import Literal

import orjson
import xxhash

from dataflow_assets_tests.fault_server.rules import Behaviour

JSON = "application/json"
EVENTS = "text/event-stream"
DIMENSIONS = 8
_PIECE_CHARS = 4


@dataclass(slots=True)
class Request:
    """A request as far as answers depend on it."""

    path: str
    head: bytes
    body: Mapping[str, object]
    content: str

    @property
    def n(self) -> int:
        """Choices asked for."""
        n = self.body.get("n")
        return n if isinstance(n, int) else 1

    @property
    def is_chat(self) -> bool:
        """Whether this is not a plain completion."""
        return self.path.endswith("/chat/completions")

    @property
    def authorization(self) -> str:
        """The value of that header."""
        for line in self.head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "authorization":
                return value.strip()
        return ""


@dataclass(slots=True)
class Reply:
    """Pieces of a body, and how they go out.

    `length` announces the length, `chunked` the usual form of streams, `close` nothing: the end of
    the connection is the end. `end` is what happens after the last piece: `keep` the connection,
    `close` it, `reset` it, `hang`.
    """

    body: Sequence[bytes]
    status: int = 200
    type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["length", "chunked", "close"] = "length"
    pause_s: float = 0.0
    end: Literal["keep", "close", "reset", "hang"] = "keep"
    missing_bytes: int = 0


def reply_of(behaviour: Behaviour, request: Request) -> Reply:
    """What is sent for a behaviour. Raises KeyError for an unknown kind."""
    return _KINDS[str(behaviour["kind"])](behaviour, request)


def texts_of(behaviour: Behaviour, request: Request) -> list[str]:
    """The text of each choice: `text` (one, or a list) with `{content}` and `{n}` filled in."""
    given = behaviour.get("text", "{content}")
    listed = given if isinstance(given, list) else [given] * request.n
    return [
        str(text).replace("{content}", request.content).replace("{n}", str(n))
        for n, text in enumerate(listed)
    ]


def _filled(text: str, request: Request) -> str:
    return text.replace("{content}", request.content).replace("{authorization}", request.authorization)


def _choice(request: Request, index: int, text: str | None, finish: str | None, **more: object) -> dict:
    said = {"message": {"role": "assistant", "content": text, **more}} if request.is_chat else {"text": text}
    return {"index": index, **said, "finish_reason": finish}


def _tokens(text: str) -> int:
    return len(text.split()) + 1


def _usage(behaviour: Behaviour, request: Request, texts: Sequence[str]) -> dict[str, int]:
    tokens_in = behaviour.get("tokens_in", _tokens(request.content))
    tokens_out = behaviour.get("tokens_out", sum(map(_tokens, texts)))
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}  # pyright: ignore[reportReturnType]


def _whole(
    behaviour: Behaviour, request: Request, choices: object, texts: Sequence[str]
) -> dict[str, object]:
    body: dict[str, object] = {"id": "c", "object": "chat.completion", "model": request.body.get("model")}
    body["choices"] = choices
    if behaviour.get("usage", True):
        body["usage"] = _usage(behaviour, request, texts)
    return body


def _ok(behaviour: Behaviour, request: Request) -> Reply:
    if request.path.endswith("/embeddings"):
        return _embedding(behaviour, request)
    if behaviour.get("stream", request.body.get("stream")):
        return _stream(behaviour, request)
    texts = texts_of(behaviour, request)
    finish = behaviour.get("finish_reason", "stop")
    choices = [_choice(request, index, text, finish) for index, text in enumerate(texts)]  # pyright: ignore
    return Reply([orjson.dumps(_whole(behaviour, request, choices, texts))])


def _embedding(behaviour: Behaviour, request: Request) -> Reply:
    numbers = [xxhash.xxh3_64_intdigest(request.content.encode(), seed) / 2**64 for seed in range(DIMENSIONS)]
    data = [{"object": "embedding", "index": 0, "embedding": behaviour.get("vector", numbers)}]
    usage = {"prompt_tokens": _tokens(request.content)}
    return Reply(
        [orjson.dumps({"object": "list", "data": data, "model": request.body.get("model"), "usage": usage})]
    )


def _events(behaviour: Behaviour, request: Request) -> list[bytes]:
    """The events of a stream; the texts in pieces, turn by turn."""
    texts, sent = texts_of(behaviour, request), []
    for start in range(0, max(map(len, texts), default=0), _PIECE_CHARS):
        for index, text in enumerate(texts):
            if piece := text[start : start + _PIECE_CHARS]:
                sent.append({"choices": [_piece(request, index, piece, None)]})
    finish = behaviour.get("finish_reason", "stop")
    sent += [{"choices": [_piece(request, index, "", finish)]} for index in range(len(texts))]
    if behaviour.get("usage", True) and request.body.get("stream_options"):
        sent.append({"choices": [], "usage": _usage(behaviour, request, texts)})
    made = [
        b"data: " + orjson.dumps({"model": request.body.get("model"), **event}) + b"\n\n" for event in sent
    ]
    return [*made, b"data: [DONE]\n\n"]


def _piece(request: Request, index: int, text: str, finish: object) -> dict[str, object]:
    said: dict[str, object] = {"delta": {"content": text}} if request.is_chat else {"text": text}
    return {"index": index, **said, "finish_reason": finish}


def _stream(behaviour: Behaviour, request: Request) -> Reply:
    return Reply(
        _events(behaviour, request),
        type=EVENTS,
        framing="chunked",
        pause_s=_seconds(behaviour, "pause_s", 0.0),
    )


def _stream_cut(behaviour: Behaviour, request: Request) -> Reply:
    """The first half of the events; then the end as usual, or with `end` a reset or a hang."""
    reply = _stream(behaviour, request)
    kept = int(_seconds(behaviour, "events", len(reply.body) // 2))
    end = behaviour.get("end", "keep")
    return Reply(reply.body[:kept], type=EVENTS, framing="chunked", end=end)  # pyright: ignore[reportArgumentType]


def _status(behaviour: Behaviour, request: Request) -> Reply:
    """`status`, `headers`, `body` (JSON, or text with `{content}` and `{authorization}`).

    `retry_after_date_s` adds a Retry-After with the date that is so many seconds ahead.
    """
    given = behaviour.get("headers", {})
    assert isinstance(given, Mapping)
    headers = {str(name): _filled(str(value), request) for name, value in given.items()}
    if "retry_after_date_s" in behaviour:
        ahead = time() + _seconds(behaviour, "retry_after_date_s", 0)
        headers["Retry-After"] = formatdate(ahead, usegmt=True)
    status = int(_seconds(behaviour, "status", 500))
    said = behaviour.get(
        "body", {"error": {"message": f"made to fail with {status}", "type": "made", "code": None}}
    )
    text = said if isinstance(said, str) else orjson.dumps(said).decode()
    kind = "text/plain" if isinstance(said, str) else JSON
    return Reply([_filled(text, request).encode()], status, headers.pop("Content-Type", kind), headers)


def _slow(behaviour: Behaviour, request: Request) -> Reply:
    """The whole answer, byte by byte, `pause_s` apart."""
    body = b"".join(_ok(behaviour, request).body)
    return Reply([body[at : at + 1] for at in range(len(body))], pause_s=_seconds(behaviour, "pause_s", 0.01))


def _cut(behaviour: Behaviour, request: Request) -> Reply:
    """Half of the answer, less than was announced; `end` is `close` or `reset`."""
    body = b"".join(_ok(behaviour, request).body)
    half = len(body) // 2
    end = behaviour.get("end", "close")
    return Reply([body[:half]], end=end, missing_bytes=len(body) - half)  # pyright: ignore[reportArgumentType]


def _html(behaviour: Behaviour, request: Request) -> Reply:
    page = str(behaviour.get("body", "<html><body>Welcome to the proxy</body></html>"))
    return Reply([page.encode()], int(_seconds(behaviour, "status", 200)), "text/html")


def _choices(make: Callable[[Behaviour, Request], object]) -> Callable[[Behaviour, Request], Reply]:
    """A behaviour that differs only in the choices."""

    def reply(behaviour: Behaviour, request: Request) -> Reply:
        body = _whole(behaviour, request, make(behaviour, request), texts_of(behaviour, request))
        return Reply([orjson.dumps(body)])

    return reply


def _finished(finish: str) -> Callable[[Behaviour, Request], Reply]:
    return lambda behaviour, request: _ok({**behaviour, "finish_reason": finish}, request)


def _text(behaviour: Behaviour, request: Request, otherwise: str) -> Reply:
    return _ok({**behaviour, "text": behaviour.get("text", otherwise)}, request)


def _error_object(behaviour: Behaviour, request: Request) -> Reply:
    error = {"message": "the engine is down", "type": "internal", "code": None}
    return _status({"status": 200, "body": {"error": error}, **behaviour}, request)


def _shuffled(behaviour: Behaviour, request: Request) -> object:
    texts = texts_of(behaviour, request)
    return [_choice(request, index, text, "stop") for index, text in enumerate(texts)][::-1]


def _wrong_choices(behaviour: Behaviour, request: Request) -> object:
    texts = texts_of(behaviour, request)
    count = int(_seconds(behaviour, "count", request.n + 1))
    return [_choice(request, index, texts[0], "stop") for index in range(count)]


def _refusal(behaviour: Behaviour, request: Request) -> object:
    said = str(behaviour.get("text", "I cannot help with that."))
    return [_choice(request, index, None, "stop", refusal=said) for index in range(request.n)]


def _missing(behaviour: Behaviour, request: Request) -> object:
    return [
        {"index": index, "message": {"role": "assistant"}, "finish_reason": "stop"}
        for index in range(request.n)
    ]


def _null(behaviour: Behaviour, request: Request) -> object:
    finish = str(behaviour.get("finish_reason", "stop"))
    return [_choice(request, index, None, finish) for index in range(request.n)]


def _seconds(behaviour: Behaviour, name: str, otherwise: float) -> float:
    value = behaviour.get(name, otherwise)
    assert isinstance(value, int | float), f"{name}: expected a number, found {value!r}"
    return value


_KINDS: Mapping[str, Callable[[Behaviour, Request], Reply]] = {
    "ok": _ok,
    "status": _status,
    "slow": _slow,
    "cut": _cut,
    "stream": lambda behaviour, request: _stream({**behaviour, "stream": True}, request),
    "stream_cut": _stream_cut,
    "html": _html,
    "error_object": _error_object,
    "null_content": _choices(_null),
    "missing_content": _choices(_missing),
    "empty_choices": _choices(lambda behaviour, request: []),
    "no_choices": _choices(lambda behaviour, request: None),
    "wrong_choices": _choices(_wrong_choices),
    "shuffled": _choices(_shuffled),
    "refusal": _choices(_refusal),
    "length": _finished("length"),
    "content_filter": _finished("content_filter"),
    "broken_json": lambda behaviour, request: _text(behaviour, request, '{"answer": "half'),
    "fenced_json": lambda behaviour, request: _text(
        behaviour, request, '```json\n{"answer": "{content}"}\n```'
    ),
    "broken_body": lambda behaviour, request: Reply([b'{"choices": [{"index": 0, "mess']),
}
# Those that send nothing are played by the connection itself.
SILENT = ("reset", "hang", "refused")
KINDS = (*_KINDS, *SILENT)
