"""Reads what an OpenAI-compatible server sent into an Answer, or says how the call failed."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import orjson

from dataflow_assets.serving.calls import Answer, Call, CallFailed, ErrorClass
from dataflow_assets.serving.openai_errors import (
    HINTS,
    class_of_error,
    class_of_status,
    error_object,
    error_text,
    shortened,
)
from dataflow_assets.serving.openai_stream import is_stream, read_stream
from dataflow_assets.serving.retry_after import retry_after_s

MAX_RAW_CHARS = 4000
_BYTES_PER_TOKEN = 4
# Finish reasons beside `stop` and the like; of OpenAI, Mistral, Zhipu, DeepSeek, vLLM and SGLang.
_NOT_FINISHED: dict[str, ErrorClass] = {
    "length": "truncated",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "abort": "cut_stream",
    "error": "cut_stream",
    "network_error": "cut_stream",
    "insufficient_system_resource": "cut_stream",
}
_MEANING: Mapping[str, str] = {
    "truncated": "the answer was cut off at the token limit; raise max_tokens or ask for less",
    "content_filter": "the server's filter withheld the answer",
    "cut_stream": "the server gave up before the answer was complete",
}


class Reply(NamedTuple):
    """What came over the wire. `whole` is whether the body ended as it was announced."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True

    @property
    def text(self) -> str:
        """The body as text, whatever its bytes are."""
        return self.body[: 4 * MAX_RAW_CHARS].decode(errors="replace")

    @property
    def kind(self) -> str:
        """The content type, for messages."""
        names = {name.lower(): value for name, value in self.headers.items()}
        return names.get("content-type", "no content type").split(";")[0]


class Usage(NamedTuple):
    """Tokens of a call, as the server counts them; None where it does not say."""

    tokens_in: int | None = None
    tokens_out: int | None = None


class _Choice(NamedTuple):
    text: str | None
    refusal: str | None
    finish_reason: str | None


def read_answer(reply: Reply, call: Call, model: str) -> Answer:
    """The answer to `call`; `model` is its name where the server gives none.

    Looks at the status, then whether it is JSON or a stream, an error object, the number of choices,
    each one's finish reason, a refusal, and only then at the content. Raises CallFailed.
    """
    if not 200 <= reply.status < 300:
        raise _status_failure(reply)
    body, ended = _body_of(reply)
    error = error_object(body)
    if error is not None:
        raise _failure(
            reply, class_of_error(error), f"status 200 with an error: {error_text(body, 'no message')}"
        )
    name = body.get("model")
    name = name if isinstance(name, str) and name else model
    usage = _usage(body)
    if call.kind == "embedding":
        return _embedding(reply, body, call, name, usage)
    return _texts(reply, _choices(reply, body, call, ended), call, name, usage)


def _status_failure(reply: Reply) -> CallFailed:
    body = _parsed(reply.body)
    found = class_of_status(reply.status, body)
    said = error_text(body, reply.text) or "nothing"
    if 300 <= reply.status < 400:
        said = f"go to {reply.headers.get('Location', 'another address')}"
    wait = retry_after_s(reply.headers, time.time())
    return _failure(reply, found, f"status {reply.status}: {said}", retry_after_s=wait)


def _failure(
    reply: Reply,
    error_class: ErrorClass,
    said: str,
    *,
    raw: str | None = None,
    usage: Usage = Usage(),  # noqa: B008
    retry_after_s: float | None = None,
) -> CallFailed:
    hint = HINTS.get(error_class) if error_class != "content_filter" or reply.status >= 400 else None
    return CallFailed(
        error_class,
        f"{reply.url}: {said}" + (f"; {hint}" if hint else ""),
        status=reply.status,
        retry_after_s=retry_after_s,
        raw=(reply.text if raw is None else raw)[:MAX_RAW_CHARS],
        tokens_in=usage.tokens_in or 0,
        tokens_out=usage.tokens_out or 0,
    )


def _parsed(data: bytes) -> object:
    """The JSON value, or None. Python's reader takes NaN and half pairs, which some servers write."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _body_of(reply: Reply) -> tuple[Mapping[str, object], bool]:
    """The answer as one JSON object, and whether the server marked its end."""
    data = reply.body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_stream(data):
        return _streamed_body(reply, data)
    body = _parsed(data)
    if isinstance(body, Mapping):
        return cast(Mapping[str, object], body), True
    if not reply.whole or (not data and reply.kind == "text/event-stream"):
        raise _failure(reply, "cut_stream", f"the answer ended after {len(reply.body)} bytes, before its end")
    found = f"{reply.kind}, {len(reply.body)} bytes: {shortened(reply.text)}"
    raise _failure(reply, "bad_response", f"expected a JSON object or a stream of events, found {found}")


def _streamed_body(reply: Reply, data: bytes) -> tuple[Mapping[str, object], bool]:
    streamed = read_stream(data)
    if streamed.broken is None or error_object(streamed.body):
        return streamed.body, streamed.ended
    if data.endswith(streamed.broken):
        raise _failure(reply, "cut_stream", "the stream ended within an event", usage=_usage(streamed.body))
    found = shortened(streamed.broken.decode(errors="replace"))
    raise _failure(reply, "bad_response", f"an event of the stream is no JSON object: {found}")


def _usage(body: Mapping[str, object]) -> Usage:
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return Usage()
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _estimated(usage: Usage, call: Call, texts: Sequence[str]) -> Usage:
    """The usage, with a fourth of the bytes where the server does not count."""
    tokens_in, tokens_out = usage
    if tokens_in is None:
        tokens_in = -(-sum(len(message["content"].encode()) for message in call.messages) // _BYTES_PER_TOKEN)
    if tokens_out is None:
        tokens_out = -(-sum(len(text.encode(errors="replace")) for text in texts) // _BYTES_PER_TOKEN)
    return Usage(tokens_in, tokens_out)


def _in_order(items: Sequence[object]) -> list[Mapping[str, object]]:
    """The objects by their `index`; as they came where they have none."""
    found = [cast(Mapping[str, object], item) for item in items if isinstance(item, Mapping)]
    indexes = [item.get("index") for item in found]
    if not all(isinstance(index, int) for index in indexes):
        return found
    return sorted(found, key=lambda item: cast(int, item["index"]))


def _choices(reply: Reply, body: Mapping[str, object], call: Call, ended: bool) -> list[_Choice]:
    """As many choices as were asked for, in order."""
    listed = body.get("choices")
    found = _in_order(listed) if isinstance(listed, list) else []
    if len(found) < call.n and not (ended and reply.whole):
        said = f"the stream ended after {len(found)} of {call.n} choices had begun"
        raise _failure(reply, "cut_stream", said, usage=_usage(body))
    if not found:
        raise _failure(reply, "bad_response", "no choices in the answer", usage=_usage(body))
    if len(found) != call.n:
        said = f"{len(found)} choices, expected {call.n}; the serving may not know `n`: set supports_n: false"
        texts = [text for item in found if (text := _choice(item).text)]
        raise _failure(reply, "wrong_choices", said, usage=_estimated(_usage(body), call, texts))
    return [_choice(item) for item in found]


def _choice(item: Mapping[str, object]) -> _Choice:
    message = item.get("message")
    said = cast(Mapping[str, object], message) if isinstance(message, Mapping) else {}
    text = _text(item["text"] if "text" in item else said.get("content"), "text")
    refusal = _text(said.get("refusal"), "refusal") or _text(said.get("content"), "refusal", parts_only=True)
    reason = item.get("finish_reason")
    return _Choice(text, refusal, reason if isinstance(reason, str) and reason else None)


def _text(value: object, kind: str, parts_only: bool = False) -> str | None:
    """A text, also one that comes as a list of parts of this kind."""
    if isinstance(value, str):
        return None if parts_only else value
    if not isinstance(value, list):
        return None
    parts = [part[kind] for part in value if isinstance(part, Mapping) and isinstance(part.get(kind), str)]
    return "".join(parts) if parts else None


def _texts(reply: Reply, choices: Sequence[_Choice], call: Call, model: str, usage: Usage) -> Answer:
    texts = [choice.text or "" for choice in choices]
    counted = _estimated(usage, call, [choice.text or choice.refusal or "" for choice in choices])
    for choice in choices:
        wrong = _wrong(choice)
        if wrong is not None:
            error_class, said, raw = wrong
            billed = usage if error_class == "cut_stream" else counted
            raise _failure(reply, error_class, said, raw=raw, usage=billed)
    reasons = tuple(choice.finish_reason or "" for choice in choices)
    return Answer(tuple(texts), counted.tokens_in or 0, counted.tokens_out or 0, model, reasons)


def _wrong(choice: _Choice) -> tuple[ErrorClass, str, str | None] | None:
    """What is wrong with a choice: class, message, and its text where it has one."""
    text, reason = choice.text, choice.finish_reason
    if reason is None:
        return "cut_stream", "the answer ended without a finish reason", text
    found = _NOT_FINISHED.get(reason.lower())
    if found is not None:
        return found, f"finish reason {shortened(reason)}: {_MEANING[found]}", text
    if choice.refusal and choice.refusal.strip():
        return "refusal", f"the model refused: {shortened(choice.refusal)}", choice.refusal
    if text is None or not text.strip():
        return "empty", f"finish reason {shortened(reason)}, but the content is {text!r:.40}", None
    if not _is_encodable(text):
        return "bad_response", "the content holds half a surrogate pair, which no file can hold", None
    return None


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _embedding(reply: Reply, body: Mapping[str, object], call: Call, model: str, usage: Usage) -> Answer:
    listed = body.get("data")
    found = _in_order(listed) if isinstance(listed, list) else []
    if not found:
        raise _failure(reply, "bad_response", "no embedding in the answer", usage=usage)
    if len(found) != len(call.messages):
        said = f"{len(found)} embeddings, expected {len(call.messages)}"
        raise _failure(reply, "wrong_choices", said, usage=usage)
    vector = found[0].get("embedding")
    if vector == []:
        raise _failure(reply, "empty", "the embedding has no numbers", usage=usage)
    if not isinstance(vector, list) or not all(map(_is_finite, vector)):
        raise _failure(reply, "bad_response", "the embedding is no list of finite numbers", usage=usage)
    tokens_in = _estimated(usage, call, ()).tokens_in or 0
    return Answer((), tokens_in, 0, model, vector=tuple(map(float, vector)))


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < float("inf")
