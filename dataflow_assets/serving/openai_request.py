"""Writes a call as the OpenAI API wants it: route and JSON body."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import orjson

from dataflow_assets.serving.calls import Call, CallFailed
from dataflow_assets.serving.spec import OpenAISpec

ROUTES = {"chat": "/chat/completions", "completion": "/completions", "embedding": "/embeddings"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARS = 64


class Request(NamedTuple):
    """A body in JSON and the route below the base URL that it is posted to."""

    route: str
    body: bytes


def request_of(spec: OpenAISpec, call: Call) -> Request:
    """The request for one attempt; the call's parameters override the serving's.

    Raises CallFailed (`bad_request`) for what JSON cannot hold: half a surrogate pair, 65 bits.
    """
    payload = {**spec.parameters, **call.parameters, "model": spec.model, **_asked(call)}
    if call.n > 1 and call.kind != "embedding":
        payload["n"] = call.n
    if call.schema is not None and call.kind == "chat" and spec.structured != "prompt":
        payload["response_format"] = _response_format(call.schema, spec.structured)
    if spec.stream and call.kind != "embedding":
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    try:
        return Request(ROUTES[call.kind], orjson.dumps(payload))
    except TypeError as error:
        raise CallFailed(
            "bad_request", f"the call cannot be written as JSON: {error}; nothing was sent"
        ) from None


def _asked(call: Call) -> dict[str, object]:
    if call.kind == "chat":
        return {"messages": call.messages}
    return {"prompt" if call.kind == "completion" else "input": call.messages[0]["content"]}


def _response_format(schema: Mapping[str, object], structured: str) -> dict[str, object]:
    if structured == "json_object":
        return {"type": "json_object"}
    name = _NOT_IN_NAMES.sub("_", str(schema.get("title") or "answer"))[:_MAX_NAME_CHARS]
    sent: dict[str, object] = {"name": name, "schema": schema}
    if fits_strict_mode(schema):
        sent["strict"] = True
    return {"type": "json_schema", "json_schema": sent}


def fits_strict_mode(schema: object) -> bool:
    """Whether OpenAI takes the schema with `strict`: no open objects, no optional fields."""
    if isinstance(schema, list):
        return all(map(fits_strict_mode, schema))
    if not isinstance(schema, Mapping):
        return True
    fields = schema.get("properties")
    if schema.get("type") == "object" or isinstance(fields, Mapping):
        names = set(fields) if isinstance(fields, Mapping) else set()
        if schema.get("additionalProperties") is not False or names != set(schema.get("required", ())):
            return False
    return all(map(fits_strict_mode, schema.values()))
