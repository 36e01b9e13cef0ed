"""Tells from the status and the error object of an answer in which way a call failed."""

import re
from collections.abc import Mapping
from typing import cast

from dataflow_assets.serving.calls import ErrorClass

MAX_MESSAGE_CHARS = 500
# Codes and types that mean more than the status beside them, in lower case: those of OpenAI, Azure,
# DashScope, DeepSeek, Zhipu, one-api and llama.cpp.
_CODES: dict[str, ErrorClass] = {
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "responsibleaipolicyviolation": "content_filter",
    "data_inspection_failed": "content_filter",
    "datainspectionfailed": "content_filter",
    "1301": "content_filter",
    "context_length_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "insufficient_quota": "quota",
    "insufficient_user_quota": "quota",
    "insufficient_balance": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "arrearage": "quota",
}
_STATUSES: dict[int, ErrorClass] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server_error",
    413: "too_large",
    425: "server_error",
    429: "rate_limited",
}
# vLLM, SGLang and others say it in words only.
_TOO_LONG = re.compile(r"context (length|window|size)|(input|prompt) is too long", re.IGNORECASE)
HINTS: Mapping[str, str] = {
    "auth": "check the api_key of the serving",
    "not_found": "check base_url and model of the serving",
    "quota": "the account is used up: pay, or use another serving",
    "context_length": "shorten the prompt or use a model with a longer context",
    "too_large": "shorten the prompt",
    "bad_request": "check the parameters of the serving and of the step",
    "content_filter": "the server refuses this prompt",
}

ErrorObject = Mapping[str, object]


def error_object(body: object) -> ErrorObject | None:
    """What the server says is wrong, in any of the forms in use; None where it says nothing."""
    if not isinstance(body, Mapping):
        return None
    error = body.get("error")
    if isinstance(error, Mapping) and error:
        return error
    if isinstance(error, str) and error:
        return {**body, "message": body.get("message") or error}
    return cast(ErrorObject, body) if body.get("object") == "error" else None


def error_text(body: object, otherwise: str) -> str:
    """What the server says in words, shortened."""
    said = error_object(body) or (body if isinstance(body, Mapping) else {})
    text = said.get("message") or said.get("detail") or otherwise
    return shortened(text if isinstance(text, str) else str(text))


def shortened(text: str) -> str:
    """At most 500 characters of a text, on one line."""
    line = " ".join(text[: 4 * MAX_MESSAGE_CHARS].split())
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def class_of_status(status: int, body: object) -> ErrorClass:
    """The class of an answer whose status is not 2xx. A redirect counts as a wrong address."""
    named = _class_named(error_object(body))
    if named and 400 <= status < 500:
        return named
    if status in (400, 422) and _TOO_LONG.search(error_text(body, "")):
        return "context_length"
    if status < 400:
        return "not_found"
    return _STATUSES.get(status, "bad_request" if status < 500 else "server_error")


def class_of_error(error: ErrorObject) -> ErrorClass:
    """The class of an error object that came with status 200: what it names itself, else `bad_response`.

    A code that is itself a status (OpenRouter, vLLM in a stream) counts where it says that asking
    again at once is of no use.
    """
    named = _class_named(error)
    if named:
        return named
    code = error.get("code")
    status = int(code) if isinstance(code, int | str) and re.fullmatch("[45][0-9]{2}", str(code)) else 500
    return class_of_status(status, {"error": error}) if status < 500 and status != 408 else "bad_response"


def _class_named(error: ErrorObject | None) -> ErrorClass | None:
    inner = error.get("innererror") if error else None
    for said in (error, inner):
        for name in ("code", "type"):
            value = said.get(name) if isinstance(said, Mapping) else None
            if isinstance(value, str | int) and str(value).lower() in _CODES:
                return _CODES[str(value).lower()]
    return None
