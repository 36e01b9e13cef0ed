"""Each way in which a server fails one call: its class, what is kept of it, what was billed."""

from collections.abc import Mapping

import pytest

from dataflow_assets.serving.calls import HARD, RETRYABLE
from dataflow_assets_tests.serving.asking import call_of, failure, send

Rule = str | Mapping[str, object]


def status(number: int, said: object = None, **fields: object) -> Rule:
    """An answer with this status, and an error object that has these fields."""
    error = {"message": said or "no", **fields}
    return {"kind": "status", "status": number, "body": {"error": error}}


FAULTS: list[tuple[Rule, str, int | None]] = [
    (status(500), "server_error", 500),
    (status(502), "server_error", 502),
    (status(503), "server_error", 503),
    (status(529), "server_error", 529),
    (status(409), "server_error", 409),
    (status(425), "server_error", 425),
    (status(429), "rate_limited", 429),
    (status(429, code="insufficient_quota"), "quota", 429),
    (status(429, type="insufficient_quota"), "quota", 429),
    (status(402, "Insufficient Balance"), "quota", 402),
    (status(400), "bad_request", 400),
    (status(422), "bad_request", 422),
    (status(405), "bad_request", 405),
    (status(400, code="content_filter"), "content_filter", 400),
    (status(400, code="data_inspection_failed"), "content_filter", 400),
    (status(400, code="x", innererror={"code": "ResponsibleAIPolicyViolation"}), "content_filter", 400),
    (status(400, code="context_length_exceeded"), "context_length", 400),
    (status(400, "This model's maximum context length is 4096 tokens."), "context_length", 400),
    (status(401), "auth", 401),
    (status(403), "auth", 403),
    (status(404), "not_found", 404),
    (status(408), "timeout", 408),
    (status(413), "too_large", 413),
    ({"kind": "status", "status": 308, "headers": {"Location": "http://x/"}, "body": ""}, "not_found", 308),
    ({"kind": "status", "status": 500, "body": "Internal Server Error"}, "server_error", 500),
    ({"kind": "status", "status": 400, "body": {"detail": [{"msg": "no"}]}}, "bad_request", 400),
    ({"kind": "status", "status": 400, "body": {"object": "error", "message": "no"}}, "bad_request", 400),
    ("reset", "connection", None),
    ({"kind": "cut"}, "cut_stream", 200),
    ({"kind": "cut", "end": "reset"}, "cut_stream", 200),
    ("html", "bad_response", 200),
    ({"kind": "html", "status": 502}, "server_error", 502),
    ("error_object", "bad_response", 200),
    ({"kind": "error_object", "body": {"error": "overloaded"}}, "bad_response", 200),
    ({"kind": "error_object", "body": {"error": {"code": 429, "message": "slow"}}}, "rate_limited", 200),
    ({"kind": "error_object", "body": {"error": {"code": 400, "message": "no"}}}, "bad_request", 200),
    ({"kind": "error_object", "body": {"error": {"code": 502, "message": "no"}}}, "bad_response", 200),
    ("broken_body", "bad_response", 200),
    ({"kind": "status", "status": 200, "body": ""}, "bad_response", 200),
    ({"kind": "status", "status": 200, "body": [1]}, "bad_response", 200),
    ({"kind": "status", "status": 200, "body": {"message": "hi"}}, "bad_response", 200),
    ("empty_choices", "bad_response", 200),
    ("no_choices", "bad_response", 200),
    ("wrong_choices", "wrong_choices", 200),
    ("null_content", "empty", 200),
    ("missing_content", "empty", 200),
    ({"kind": "ok", "text": " \n"}, "empty", 200),
    ({"kind": "ok", "text": ""}, "empty", 200),
    ("length", "truncated", 200),
    ("content_filter", "content_filter", 200),
    ({"kind": "null_content", "finish_reason": "content_filter"}, "content_filter", 200),
    ({"kind": "null_content", "finish_reason": "length"}, "truncated", 200),
    ("refusal", "refusal", 200),
    ({"kind": "ok", "finish_reason": None}, "cut_stream", 200),
    ({"kind": "ok", "finish_reason": "abort"}, "cut_stream", 200),
    ("stream_cut", "cut_stream", 200),
    ({"kind": "stream_cut", "events": 0}, "cut_stream", 200),
    ({"kind": "stream_cut", "end": "reset"}, "cut_stream", 200),
    ({"kind": "stream_cut", "end": "close"}, "cut_stream", 200),
    ({"kind": "stream", "finish_reason": "length"}, "truncated", 200),
    ({"kind": "stream", "text": ""}, "empty", 200),
]


@pytest.mark.parametrize(("rule", "error_class", "code"), FAULTS, ids=str)
def test_each_fault_has_its_class_and_status_and_is_asked_once(fault_server, rule, error_class, code):
    fault_server.rule(rule)
    failed = failure(fault_server)
    assert (failed.error_class, failed.status) == (error_class, code), failed
    assert fault_server.stats().count == 1
    assert fault_server.url in str(failed) or code == 200


@pytest.mark.parametrize(("rule", "error_class", "code"), FAULTS[:28], ids=str)
def test_only_what_may_pass_is_retried_and_what_would_fail_for_all_is_hard(
    fault_server, rule, error_class, code
):
    fault_server.rule(rule)
    failed = failure(fault_server)
    assert failed.retryable == (code in (None, 408, 409, 425, 429) or code >= 500) * (error_class != "quota")
    assert failed.hard == (code in (401, 402, 403, 404, 308) or error_class == "quota")
    assert not RETRYABLE & HARD


def test_a_refused_connection_is_a_connection_failure(fault_server):
    fault_server.refuse()
    failed = failure(fault_server)
    assert (failed.error_class, failed.status, failed.raw) == ("connection", None, "")
    assert str(fault_server.port) in str(failed)


def test_an_unknown_host_is_a_connection_failure():
    assert failure("http://nowhere.invalid/v1").error_class == "connection"


def test_something_that_is_not_http_is_a_bad_response(fault_server):
    fault_server.rule({"kind": "status", "status": 0})
    failed = failure(fault_server)
    assert failed.error_class == "bad_response"
    assert "not HTTP" in str(failed)


@pytest.mark.parametrize(
    "rule", ["hang", {"kind": "slow", "pause_s": 30}, {"kind": "stream_cut", "end": "hang"}]
)
def test_silence_ends_at_the_read_timeout(fault_server, rule):
    fault_server.rule(rule)
    failed = failure(fault_server, read_timeout_s=0.2)
    assert failed.error_class == "timeout"
    assert "0.2 s (read_timeout_s)" in str(failed)


def test_a_slow_body_ends_at_the_total_timeout_and_what_came_is_kept(fault_server):
    fault_server.rule({"kind": "slow", "pause_s": 0.02})
    failed = failure(fault_server, total_timeout_s=0.5)
    assert failed.error_class == "timeout"
    assert "total_timeout_s" in str(failed)
    assert failed.raw.startswith('{"id"')


def test_a_slow_body_within_the_limits_is_an_answer(fault_server):
    fault_server.rule({"kind": "slow", "pause_s": 0.001})
    assert send(fault_server).text == "hello"


@pytest.mark.parametrize(
    ("rule", "raw"),
    [("length", "hello"), ("content_filter", "hello"), ("refusal", "I cannot help with that.")],
)
def test_the_partial_text_is_kept_and_billed(fault_server, rule, raw):
    fault_server.rule({"kind": rule, "tokens_in": 7, "tokens_out": 3})
    failed = failure(fault_server)
    assert failed.raw == raw
    assert (failed.tokens_in, failed.tokens_out) == (7, 3)


@pytest.mark.parametrize("kind", ["null_content", "wrong_choices", "empty_choices"])
def test_what_an_unusable_answer_cost_is_told(fault_server, kind):
    fault_server.rule({"kind": kind, "tokens_in": 7, "tokens_out": 3})
    failed = failure(fault_server)
    assert (failed.tokens_in, failed.tokens_out) == (7, 3)
    assert '"usage"' in failed.raw


def test_a_truncated_answer_without_usage_is_billed_by_its_bytes(fault_server):
    fault_server.rule({"kind": "length", "usage": False, "text": "x" * 41})
    failed = failure(fault_server, call_of("y" * 13))
    assert (failed.tokens_in, failed.tokens_out) == (4, 11)


def test_the_servers_words_are_in_the_message_shortened_and_the_raw_answer_is_limited(fault_server):
    fault_server.rule(status(400, "temperature must be low " * 1000))
    failed = failure(fault_server)
    assert "status 400: temperature must be low" in str(failed)
    assert len(str(failed)) < 700
    assert len(failed.raw) == 4000


def test_html_is_named_as_such_with_its_beginning(fault_server):
    fault_server.rule("html")
    assert "found text/html, " in str(failure(fault_server))
    assert "Welcome to the proxy" in failure(fault_server).raw


@pytest.mark.parametrize(("ahead", "least"), [(-9, 0), (3000, 1)])
def test_a_date_in_retry_after_is_counted_from_now(fault_server, ahead, least):
    fault_server.rule({"kind": "status", "status": 429, "retry_after_date_s": ahead})
    wait = failure(fault_server).retry_after_s
    assert wait is not None
    assert least <= wait <= max(0, ahead)


def test_an_answer_larger_than_the_limit_is_not_read_to_its_end(fault_server, monkeypatch):
    monkeypatch.setattr("dataflow_assets.serving.openai_connection.MAX_BODY_BYTES", 1 << 20)
    fault_server.rule({"kind": "ok", "text": "x" * (3 << 20)})
    failed = failure(fault_server)
    assert failed.error_class == "bad_response"
    assert "larger than 1 MiB" in str(failed)


def test_the_call_after_a_fault_goes_through_on_the_same_serving(fault_server):
    faults = ["reset", "cut", "hang", "stream_cut", "html"]
    for number, rule in enumerate(faults):
        fault_server.rule(rule, "ok", contains=f"row {number}")
        failure(fault_server, call_of(f"row {number}"), read_timeout_s=0.2)
        assert send(fault_server, call_of(f"row {number}")).text == f"row {number}"


def test_what_json_cannot_hold_fails_before_it_is_sent(fault_server):
    failed = failure(fault_server, call_of("half \ud83d"))
    assert (failed.error_class, failed.retryable) == ("bad_request", False)
    assert fault_server.stats().count == 0


def test_half_a_surrogate_pair_in_an_answer_is_no_answer(fault_server):
    choice = '{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"\\ud83d"}}]}'
    fault_server.rule({"kind": "status", "status": 200, "body": choice})
    assert failure(fault_server).error_class == "bad_response"
