"""A serving that reaches models through the package LiteLLM, for services without the OpenAI API."""

import asyncio
import os
import sys
import time
from typing import Any

from dataflow_assets.optional_packages import require
from dataflow_assets.serving.calls import Answer, Call, CallFailed, ErrorClass
from dataflow_assets.serving.finish import usable
from dataflow_assets.serving.openai_errors import class_of_status
from dataflow_assets.serving.redaction import Redaction
from dataflow_assets.serving.retry_after import retry_after_s
from dataflow_assets.serving.spec import LiteLLMSpec

_MAX_MESSAGE_CHARS = 500
# By the name of the exception's class, its own before those that it extends.
_CLASSES: dict[str, ErrorClass] = {
    "ContextWindowExceededError": "context_length",
    "ContentPolicyViolationError": "content_filter",
    "LiteLLMUnknownProvider": "not_found",
    "PaymentRequiredError": "quota",
    "BudgetExceededError": "quota",
    "AuthenticationError": "auth",
    "PermissionDeniedError": "auth",
    "NotFoundError": "not_found",
    "Timeout": "timeout",
    "APITimeoutError": "timeout",
    "RateLimitError": "rate_limited",
    "APIConnectionError": "connection",
    "APIResponseValidationError": "bad_response",
    "ServiceUnavailableError": "server_error",
    "InternalServerError": "server_error",
    "BadRequestError": "bad_request",
    "UnprocessableEntityError": "bad_request",
}
_IN_MESSAGE: dict[str, ErrorClass] = {
    "insufficient_quota": "quota",
    "LLM Provider NOT provided": "not_found",
    "Connection error": "connection",
}


class LiteLLMServing:
    """Sends each call once; retries, limits and prices are ours, not LiteLLM's.

    `model` is LiteLLM's name, e.g. `anthropic/claude-haiku-4-5`; without `api_key` the variables
    that LiteLLM reads count. Raises ConfigError where the package is missing.
    """

    supports_n = False

    def __init__(self, spec: LiteLLMSpec) -> None:
        require({"litellm": "litellm"}, "a serving of type 'litellm'")
        self.model = spec.model
        self._spec = spec
        self._redaction = Redaction([spec.api_key.get_secret_value()] if spec.api_key else [])

    async def send(self, call: Call) -> Answer:
        """One attempt. Raises CallFailed with LiteLLM's error in our classes; the key is in no message."""
        litellm = await asyncio.to_thread(_litellm)
        try:
            response = await self._asked(litellm, call)
        except Exception as error:  # noqa: BLE001  LiteLLM's errors have no common class
            raise _failure(error, self._redaction.text(str(error))) from None
        return _vector(response) if call.kind == "embedding" else usable(_answer(response, call))

    async def close(self) -> None:
        """Closes the connections that LiteLLM keeps for the whole process."""
        litellm = sys.modules.get("litellm")
        if litellm is None:
            return
        await litellm.close_litellm_async_clients()
        litellm.in_memory_llm_clients_cache.flush_cache()  # a closed client would be used again

    async def _asked(self, litellm: Any, call: Call) -> Any:
        content = call.messages[-1]["content"]
        if call.kind == "embedding":
            return await litellm.aembedding(input=[content], **self._arguments(call))
        if call.kind == "completion":
            return await litellm.atext_completion(prompt=content, **self._arguments(call))
        messages = [dict(message) for message in call.messages]
        return await litellm.acompletion(
            messages=messages, **self._arguments(call), **self._format(litellm, call)
        )

    def _arguments(self, call: Call) -> dict[str, object]:
        spec = self._spec
        key = spec.api_key.get_secret_value() if spec.api_key else None
        # `api_base`, not `base_url`: embeddings ignore that one and send the key to the vendor
        fixed = {
            "model": spec.model,
            "api_key": key,
            "api_base": spec.base_url,
            "timeout": spec.total_timeout_s,
        }
        samples = {"n": call.n} if call.n > 1 else {}
        return {**spec.parameters, **call.parameters, **samples, **fixed, "num_retries": 0, "max_retries": 0}

    def _format(self, litellm: Any, call: Call) -> dict[str, object]:
        """The schema, for models that take one; the prompt says it to the others."""
        if call.schema is None or not litellm.supports_response_schema(model=self.model):
            return {}
        schema = {"name": str(call.schema.get("title") or "answer"), "schema": call.schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _litellm() -> Any:
    """The package, made to keep quiet and to fetch nothing. Its import takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    return litellm


def _failure(error: Exception, said: str) -> CallFailed:
    """The error in our terms; `said` is what it says, without secrets."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    status = getattr(error, "status_code", None)
    message = " ".join(said.split())[:_MAX_MESSAGE_CHARS]
    return CallFailed(
        _class_of(error),
        f"LiteLLM: {message}",
        status=status if isinstance(status, int) else None,
        retry_after_s=retry_after_s(headers, time.time()),
    )


def _class_of(error: Exception) -> ErrorClass:
    """What the message says beyond doubt, else what the exception is, else what its status is."""
    for words in filter(str(error).__contains__, _IN_MESSAGE):
        return _IN_MESSAGE[words]
    for base in type(error).__mro__:
        if base.__name__ in _CLASSES:
            return _CLASSES[base.__name__]
    status = getattr(error, "status_code", None)
    return class_of_status(status, {}) if isinstance(status, int) and status >= 400 else "server_error"


def _answer(response: Any, call: Call) -> Answer:
    """The texts in the order of their index. Raises CallFailed `wrong_choices`."""
    choices = sorted(response.choices, key=lambda choice: choice.index)
    texts = [choice.text if call.kind == "completion" else choice.message.content for choice in choices]
    tokens_in, tokens_out = _tokens(response)
    if len(texts) != call.n:
        message = f"{len(texts)} choices came back, expected {call.n}"
        raise CallFailed("wrong_choices", message, tokens_in=tokens_in, tokens_out=tokens_out)
    reasons = tuple(str(choice.finish_reason) for choice in choices)
    return Answer(tuple(text or "" for text in texts), tokens_in, tokens_out, str(response.model), reasons)


def _vector(response: Any) -> Answer:
    found = response.data[0]
    vector = found["embedding"] if isinstance(found, dict) else found.embedding
    return Answer(tokens_in=_tokens(response)[0], model=str(response.model), vector=tuple(map(float, vector)))


def _tokens(response: Any) -> tuple[int, int]:
    usage = getattr(response, "usage", None)
    return getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0
