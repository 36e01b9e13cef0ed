"""What is sent for a call, and how answers of every form are read."""

import asyncio

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.calls import Call, Serving
from dataflow_assets.serving.openai import OpenAIServing
from dataflow_assets.serving.openai_request import fits_strict_mode
from dataflow_assets.serving.spec import OpenAISpec
from dataflow_assets_tests.serving.asking import call_of, failure, send, send_all

CLOSED = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
OPEN = {"title": "Q & A", "type": "object", "properties": {"q": {"type": "string"}}}


def test_an_answer_has_text_tokens_model_and_finish_reason(fault_server):
    fault_server.rule({"kind": "ok", "text": "<{content}>", "tokens_in": 5, "tokens_out": 2})
    answer = send(fault_server)
    assert (answer.texts, answer.finish_reasons, answer.model) == (("<hello>",), ("stop",), "m")
    assert (answer.tokens_in, answer.tokens_out, answer.vector) == (5, 2, None)


def test_a_chat_sends_model_messages_and_parameters_of_which_the_calls_win(fault_server):
    send(fault_server, call_of(temperature=0.5, seed=3), parameters={"temperature": 1.0, "top_p": 0.9})
    stats = fault_server.stats()
    messages = [{"role": "user", "content": "hello"}]
    expected = {"model": "m", "messages": messages, "temperature": 0.5, "top_p": 0.9, "seed": 3}
    assert stats.last_body == expected
    assert stats.requests[0].path == "/v1/chat/completions"


def test_text_arrives_as_it_is(fault_server):
    hostile = 'braces {x} {{ y }} ${z} <|im_start|>system "q" \\ \u2028 \x00 \x1f 你好 🎉 {content}'
    assert send(fault_server, call_of(hostile)).text == hostile


def test_completions_and_embeddings_have_their_routes_and_fields(fault_server):
    assert send(fault_server, call_of("once", "completion", max_tokens=9)).text == "once"
    assert fault_server.stats().last_body == {"model": "m", "prompt": "once", "max_tokens": 9}
    answer = send(fault_server, call_of("vector", "embedding"))
    assert fault_server.stats().last_body == {"model": "m", "input": "vector"}
    assert answer.vector is not None and len(answer.vector) == 8
    assert (answer.texts, answer.tokens_out) == ((), 0)


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, {"strict": True}), (OPEN, {})])
def test_a_schema_is_sent_as_response_format_strict_where_that_is_allowed(fault_server, schema, strict):
    send(fault_server, Call(call_of().messages, schema=schema))
    sent = fault_server.stats().last_body["response_format"]
    name = "Q_A" if schema is OPEN else "answer"
    assert sent == {"type": "json_schema", "json_schema": {"name": name, "schema": schema, **strict}}


@pytest.mark.parametrize(("structured", "sent"), [("json_object", {"type": "json_object"}), ("prompt", None)])
def test_a_server_without_schemas_is_sent_none(fault_server, structured, sent):
    send(fault_server, Call(call_of().messages, schema=OPEN), structured=structured)
    assert fault_server.stats().last_body.get("response_format") == sent


def test_strict_mode_wants_closed_objects_at_every_depth():
    nested = {**CLOSED, "properties": {"q": {"type": "array", "items": OPEN}}}
    assert fits_strict_mode(CLOSED)
    assert not fits_strict_mode(nested)
    assert not fits_strict_mode({**CLOSED, "required": []})
    assert not fits_strict_mode({"anyOf": [CLOSED, OPEN]})


@pytest.mark.parametrize("kind", ["chat", "completion"])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("rule", ["ok", "stream", {"kind": "ok", "stream": False}])
def test_streamed_or_not_is_the_same_answer_whatever_was_asked_for(fault_server, rule, asked, kind):
    fault_server.rule(rule)
    answer = send(fault_server, call_of("one two 三 🎉 four", kind), stream=asked)
    assert (answer.text, answer.finish_reasons) == ("one two 三 🎉 four", ("stop",))
    assert fault_server.stats().last_body.get("stream", False) == asked
    assert (answer.tokens_in, answer.tokens_out) == (6, 6)


@pytest.mark.parametrize("rule", ["ok", "shuffled", "stream"])
def test_samples_are_in_order_whatever_the_order_of_the_choices(fault_server, rule):
    fault_server.rule({"kind": rule, "text": "sample {n}"})
    answer = send(fault_server, call_of(n=3), supports_n=True)
    assert fault_server.stats().last_body["n"] == 3
    assert answer.texts == ("sample 0", "sample 1", "sample 2")


def test_usage_that_is_missing_is_estimated_from_the_bytes(fault_server):
    fault_server.rule({"kind": "ok", "usage": False, "text": "答" * 4})
    answer = send(fault_server, call_of("x" * 9))
    assert (answer.tokens_in, answer.tokens_out) == (3, 3)


@pytest.mark.parametrize(
    "usage", [None, [], {}, {"prompt_tokens": None}, {"prompt_tokens": -4, "completion_tokens": "x"}]
)
def test_usage_that_is_nonsense_is_estimated_too(fault_server, usage):
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "fine"}}
    fault_server.rule({"kind": "status", "status": 200, "body": {"choices": [choice], "usage": usage}})
    answer = send(fault_server, call_of("1234"))
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("fine", 1, 1)


STOP = '"finish_reason":"stop"'
STREAMS = {
    "crlf and comments": ': PROCESSING\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"a"}}]}\r\n\r\n'
    f'data: {{"choices":[{{"index":0,"delta":{{"content":"b"}},{STOP}}}]}}\r\n\r\ndata: [DONE]\r\n\r\n',
    "no space, no mark of the end": 'data:{"choices":[{"delta":{"content":"ab"}}]}\n\n'
    f'data:{{"choices":[{{"delta":{{}},{STOP}}}]}}\n\n',
    "named events, several lines": 'event: message\nid: 1\ndata: {"choices":\n'
    f'data: [{{"index":0,"delta":{{"content":"ab"}},{STOP}}}]}}\n\ndata: [DONE]',
    "null fields": 'data: {"choices":[{"index":0,"delta":{"content":null}}],"usage":null}\n\n'
    'data: {"choices":[{"index":0,"delta":{"content":"ab"}}]}\n\n'
    f'data: {{"choices":[{{"index":0,"delta":null,{STOP}}}]}}\n\ndata: {{"choices":[]}}\n\ndata: [DONE]\n\n',
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_every_dialect_of_streams_is_read(fault_server, stream):
    headers = {"Content-Type": "text/event-stream"}
    fault_server.rule({"kind": "status", "status": 200, "headers": headers, "body": stream})
    assert send(fault_server).text == "ab"


BODIES = {
    "byte order mark": f'\ufeff{{"choices":[{{"index":0,{STOP},"message":{{"content":"ab"}}}}]}}',
    "blank lines first": f'\n\n  {{"choices":[{{{STOP},"message":{{"content":"ab"}}}}],"error":null}}',
    "parts": f'{{"choices":[{{{STOP},"message":{{"content":[{{"type":"thinking","thinking":[]}},'
    '{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}',
    "not a number beside it": f'{{"choices":[{{{STOP},"logprobs":NaN,"message":{{"content":"ab"}}}}]}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_dialect_of_answers_is_read(fault_server, body):
    fault_server.rule({"kind": "status", "status": 200, "body": body})
    assert send(fault_server).text == "ab"


def test_an_embedding_that_is_no_list_of_numbers_is_refused(fault_server):
    for vector in ("[1, null]", '"AAAA"', "[1e400]", "[NaN]", "{}", "[]"):
        fault_server.reset()
        fault_server.rule({"kind": "status", "status": 200, "body": f'{{"data":[{{"embedding":{vector}}}]}}'})
        failed = failure(fault_server, call_of("x", "embedding"))
        assert failed.error_class == ("empty" if vector == "[]" else "bad_response"), vector


def test_a_stream_whose_connection_stays_open_after_its_mark_is_whole(fault_server):
    fault_server.rule({"kind": "stream_cut", "events": 100, "end": "hang"})
    assert send(fault_server, read_timeout_s=20).text == "hello"


def test_connections_are_kept_and_as_many_as_the_concurrency(fault_server):
    assert len(send_all(fault_server, [call_of(str(n)) for n in range(20)])) == 20
    fault_server.default(delay_s=0.05)
    serving = OpenAIServing(OpenAISpec(model="m", base_url=fault_server.url, concurrency=3))

    async def many() -> int:
        await asyncio.gather(*(serving.send(call_of(str(n))) for n in range(12)))
        connections = fault_server.stats().connections
        await serving.close()
        return connections

    assert asyncio.run(many()) == 3 + 1  # the one that asks for the records
    assert fault_server.stats().in_flight_max == 3


def test_one_serving_works_in_one_event_loop_after_the_other(fault_server):
    serving = OpenAIServing(OpenAISpec(model="m", base_url=fault_server.url))

    async def sent(text: str) -> str:
        answer = await serving.send(call_of(text))
        await serving.close()
        return answer.text

    assert [asyncio.run(sent(text)) for text in "ab"] == ["a", "b"]


def test_a_cancelled_call_closes_its_connection_and_the_next_goes_through(fault_server):
    fault_server.rule("hang", "ok")
    serving = OpenAIServing(OpenAISpec(model="m", base_url=fault_server.url))

    async def cancelled_then_sent() -> str:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(serving.send(call_of()), 0.2)
        answer = await serving.send(call_of())
        await serving.close()
        return answer.text

    assert asyncio.run(cancelled_then_sent()) == "hello"


@pytest.mark.parametrize(
    ("base_url", "said"),
    [
        ("localhost:8000/v1", "expected http"),
        ("ftp://x/v1", "expected http"),
        ("http://", "expected http"),
        ("http://x/v1/chat/completions/", "give the part before it"),
        ("http://user:secret-pass@x/v1", "user name beside api_key"),
    ],
)
def test_a_base_url_that_cannot_be_right_is_refused_at_the_start(base_url, said):
    with pytest.raises(ConfigError, match=said) as caught:
        OpenAIServing(
            OpenAISpec.model_validate({"model": "m", "base_url": base_url, "api_key": "sk-12345678"})
        )
    assert "secret-pass" not in str(caught.value)


@pytest.mark.parametrize("url", ["{0}/", "{0}?api-version=7", " {0} "])
def test_a_slash_a_query_or_a_blank_in_the_base_url_does_no_harm(fault_server, url):
    assert send(url.format(fault_server.url)).text == "hello"
    assert ("api-version=7" in fault_server.stats().last_head) == ("?" in url)


def test_a_proxy_that_does_not_speak_http_is_refused_at_the_start(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(ConfigError, match="names a socks5 proxy"):
        OpenAIServing(OpenAISpec(model="m"))


def test_the_serving_is_one(fault_server):
    serving: Serving = OpenAIServing(OpenAISpec(model="m", base_url=fault_server.url, supports_n=True))
    assert (serving.model, serving.supports_n) == ("m", True)


def test_a_proxy_of_the_environment_is_used_and_no_proxy_is_respected(fault_server, monkeypatch):
    monkeypatch.setenv("http_proxy", fault_server.url.replace("http://", "http://me:secret-pass@"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    assert send("http://elsewhere.invalid/v1").text == "hello"
    head = fault_server.stats().last_head
    assert "POST http://elsewhere.invalid/v1/chat/completions" in head
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0LXBhc3M=" in head
    assert send(fault_server).text == "hello"
    assert "POST /v1/chat/completions" in fault_server.stats().last_head
