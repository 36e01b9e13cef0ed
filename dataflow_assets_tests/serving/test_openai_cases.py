"""The shared cases 21 (filtered answers) and 24 (Retry-After) at the level of one attempt."""

import json
from pathlib import Path

import pytest

from dataflow_assets_tests.serving.asking import call_of, failure, send

CASES = Path(__file__).parents[1] / "cases"
FILTERED = json.loads((CASES / "21_content_filter_null/input.responses.json").read_text())
WAITS = json.loads((CASES / "24_retry_after_forms/input.cases.json").read_text())["cases"]
READ_FROM_A_CLOCK = ("http_date_future", "http_date_past")
CLASSES = {"quota": "quota", "auth": "auth", "bad_request": "context_length", "timeout": "timeout"}


def _scripted(server, responses):
    for response in responses:
        rule = {"kind": "status", **response, "body": response.get("body", response.get("body_text", {}))}
        server.rule(rule, contains=str(rule.pop("id", "")))


@pytest.mark.parametrize(("row", "text"), [("1", "正常回答"), ("7", "尾行")])
def test_case_21_plain_answers_are_answers(fault_server, row, text):
    _scripted(fault_server, FILTERED)
    assert send(fault_server, call_of(row)).text == text


@pytest.mark.parametrize(
    ("row", "error_class", "kept"),
    [
        ("2", "content_filter", '"content":null'),
        ("3", "content_filter", '"role":"assistant"}'),
        ("4", "content_filter", "The prompt was filtered"),
        ("5", "content_filter", "说到一半"),
        ("6", "refusal", "不能回答"),
    ],
)
def test_case_21_filtered_answers_fail_without_retry_and_keep_what_was_said(
    fault_server, row, error_class, kept
):
    _scripted(fault_server, FILTERED)
    failed = failure(fault_server, call_of(row))
    assert (failed.error_class, failed.retryable) == (error_class, False)
    assert kept in failed.raw
    assert failed.raw == kept or row in "234"
    assert failed.tokens_in == (0 if row == "4" else 5)


@pytest.mark.parametrize("case", WAITS, ids=lambda case: case["name"])
def test_case_24_each_answer_is_retried_or_not_as_stated(fault_server, case):
    _scripted(
        fault_server,
        [{name: case[name] for name in ("status", "headers", "body", "body_text") if name in case}],
    )
    failed = failure(fault_server)
    assert failed.retryable == bool(case["retry"])
    assert failed.status == case["status"]
    assert failed.error_class == CLASSES.get(case["name"], failed.error_class)


@pytest.mark.parametrize(
    "case", [case for case in WAITS if case["name"] not in READ_FROM_A_CLOCK], ids=lambda case: case["name"]
)
def test_case_24_the_failure_carries_the_wait_that_was_asked_for(fault_server, case):
    _scripted(fault_server, [{"status": case["status"], "headers": case["headers"]}])
    expected = {"seconds": 2, "fraction": 0.5, "ms_header": 0.15, "one_day": 86400}
    assert failure(fault_server).retry_after_s == expected.get(case["name"])
