"""Puts a streamed answer (server-sent events) together into the form of an unstreamed one."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

DONE = b"[DONE]"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class Streamed(NamedTuple):
    """The answer that the events add up to. `ended` is whether the server marked the end.

    `broken` is the first event that is no JSON object.
    """

    body: Mapping[str, object]
    ended: bool
    broken: bytes | None = None


def is_stream(body: bytes) -> bool:
    """Whether a body consists of server-sent events, whatever its content type says."""
    return body.startswith(_FIELDS)


def is_at_end(received: bytes | bytearray) -> bool:
    """Whether the last thing received is the mark of the end."""
    return received.rstrip().endswith((b"\ndata: " + DONE, b"\ndata:" + DONE))


def read_stream(body: bytes) -> Streamed:
    """Adds up the events: texts by index, the last usage, the first error."""
    whole: dict[str, object] = {}
    choices: dict[int, dict[str, object]] = {}
    for event in _events(body):
        if event.strip() == DONE:
            return Streamed(_answer(whole, choices), True)
        try:
            chunk = orjson.loads(event)
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict):
            return Streamed(_answer(whole, choices), False, event)
        _add(chunk, whole, choices)
    return Streamed(_answer(whole, choices), False)


def _events(body: bytes) -> Iterator[bytes]:
    """The data of each event; an unfinished last one too."""
    data: list[bytes] = []
    for line in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _add(chunk: dict[str, object], whole: dict[str, object], choices: dict[int, dict[str, object]]) -> None:
    for name in ("model", "usage"):
        if chunk.get(name):
            whole[name] = chunk[name]
    for name in ("error", "object", "message"):
        if chunk.get(name) and ("error" in chunk or chunk.get("object") == "error"):
            whole.setdefault(name, chunk[name])
    found = chunk.get("choices")
    for piece in found if isinstance(found, list) else []:
        if isinstance(piece, dict):
            index = piece.get("index")
            _add_piece(piece, choices.setdefault(index if isinstance(index, int) else 0, {}))


def _add_piece(piece: dict[str, object], choice: dict[str, object]) -> None:
    """Adds one piece to its choice, whose texts are lists of pieces until the end."""
    delta = piece.get("delta") or piece.get("message") or {}
    said = {**delta, **piece} if isinstance(delta, dict) else piece
    for name in ("content", "refusal", "text"):
        text = said.get(name)
        if isinstance(text, str):
            choice.setdefault(name, [])
            pieces = choice[name]
            assert isinstance(pieces, list)
            pieces.append(text)
    if piece.get("finish_reason"):
        choice["finish_reason"] = piece["finish_reason"]


def _answer(whole: dict[str, object], choices: dict[int, dict[str, object]]) -> dict[str, object]:
    if "error" in whole or whole.get("object") == "error":
        return whole
    found: list[dict[str, object]] = []
    for index, choice in choices.items():
        said = {name: "".join(text) for name, text in choice.items() if isinstance(text, list)}
        made = {"index": index, "finish_reason": choice.get("finish_reason"), "message": said}
        found.append({**made, "text": said["text"]} if "text" in said else made)
    return {**whole, "choices": found}
