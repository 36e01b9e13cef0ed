"""LiteLLM's answers and errors in our terms: by its own mocks, and against a real server."""

import asyncio
import importlib.util

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.litellm_adapter import LiteLLMServing
from dataflow_assets.serving.make import make_serving
from dataflow_assets.serving.spec import LiteLLMSpec
from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.serving.asking import call_of

KEY = "sk-very-secret-1234"
needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None, reason="not installed: litellm"
)
pytestmark = pytest.mark.filterwarnings("default")


def sent(call: Call, base_url: str | None = None, **parameters: object) -> Answer:
    """What one attempt brings."""
    fields = {"model": "openai/m", "api_key": KEY, "base_url": base_url, "parameters": parameters}
    serving = make_serving(LiteLLMSpec.model_validate({"type": "litellm", **fields}))

    async def once() -> Answer:
        try:
            return await serving.send(call)
        finally:
            await serving.close()

    return asyncio.run(once())


def failed(call: Call, base_url: str | None = None, **parameters: object) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        sent(call, base_url, **parameters)
    return caught.value


@needs_litellm
def test_a_mocked_answer_comes_with_its_tokens() -> None:
    answer = sent(call_of(), mock_response="hello")
    assert (answer.texts, answer.finish_reasons) == (("hello",), ("stop",))
    assert answer.tokens_in > 0 and answer.tokens_out > 0


@needs_litellm
@pytest.mark.parametrize(
    ("mock", "told"),
    [
        ("litellm.RateLimitError", "rate_limited"),
        ("litellm.ContextWindowExceededError", "context_length"),
        ("litellm.InternalServerError", "server_error"),
    ],
)
def test_mocked_errors_have_our_classes(mock: str, told: str) -> None:
    assert failed(call_of(), mock_response=mock).error_class == told


@needs_litellm
def test_a_server_is_asked_with_key_parameters_and_schema(fault_server: FaultServer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    answer = sent(Call(call_of("hi").messages, {"temperature": 0.5}, schema=schema), fault_server.url)
    assert answer.text == "hi"


@needs_litellm
@pytest.mark.parametrize(
    ("status", "fields", "told"),
    [
        (400, {}, "bad_request"),
        (401, {}, "auth"),
        (403, {}, "auth"),
        (404, {}, "not_found"),
        (408, {}, "timeout"),
        (422, {}, "bad_request"),
        (429, {}, "rate_limited"),
        (429, {"code": "insufficient_quota"}, "quota"),
        (500, {}, "server_error"),
        (503, {}, "server_error"),
    ],
)
def test_a_status_of_a_server_has_our_class_and_is_sent_once(
    fault_server: FaultServer, status: int, fields: dict[str, str], told: str
) -> None:
    body = {"error": {"message": f"no {KEY} {fields}", **fields}}
    fault_server.rule({"kind": "status", "status": status, "body": body})
    failure = failed(call_of(), fault_server.url)
    assert (failure.error_class, failure.status) == (told, status)
    assert KEY not in str(failure) and len(fault_server.stats().requests) == 1


@needs_litellm
def test_retry_after_is_kept(fault_server: FaultServer) -> None:
    fault_server.rule({"kind": "status", "status": 429, "headers": {"Retry-After": "7"}, "body": {}})
    assert failed(call_of(), fault_server.url).retry_after_s == 7


@needs_litellm
@pytest.mark.parametrize(
    ("rule", "told"), [("length", "truncated"), ("null_content", "empty"), ("reset", "connection")]
)
def test_bad_answers_of_a_server_fail(fault_server: FaultServer, rule: str, told: str) -> None:
    fault_server.rule(rule)
    assert failed(call_of(), fault_server.url).error_class == told


@needs_litellm
def test_completions_and_embeddings_are_asked_for_too(fault_server: FaultServer) -> None:
    assert sent(call_of("hi", kind="completion"), fault_server.url).text == "hi"
    assert sent(call_of("hi", kind="embedding"), fault_server.url).vector


def test_a_missing_package_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'dataflow_assets\[litellm\]'"):
        LiteLLMServing(LiteLLMSpec(type="litellm", model="m"))
