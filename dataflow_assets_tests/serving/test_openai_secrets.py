"""The key goes to the server and nowhere else."""

import traceback

import pytest

from dataflow_assets.serving.openai import OpenAIServing
from dataflow_assets.serving.redaction import Redaction
from dataflow_assets.serving.spec import OpenAISpec
from dataflow_assets_tests.serving.asking import failure, send

KEY = "sk-a/b+c=TOPSECRET-123"
OTHER = "header-TOPSECRET-456"
ECHO = {"error": {"message": "bad key {authorization}"}}
FAULTS = [
    {"kind": "status", "status": 401, "body": ECHO},
    {"kind": "status", "status": 400, "body": "you sent {authorization}"},
    {"kind": "status", "status": 307, "headers": {"Location": "http://x/?k={authorization}"}, "body": ""},
    {"kind": "status", "status": 200, "body": ECHO},
    {"kind": "status", "status": 200, "body": "<html>{authorization}"},
    {"kind": "status", "status": 0, "body": "{authorization}"},
    "reset",
    "cut",
    "hang",
]


def _secrets(fault_server):
    url = fault_server.url + "?token=query-TOPSECRET-789"
    return {"base_url": url, "api_key": KEY, "headers": {"X-Key": OTHER}, "read_timeout_s": 0.2}


@pytest.mark.parametrize("rule", FAULTS, ids=str)
def test_no_error_shows_a_secret_that_the_server_echoes(fault_server, rule):
    fault_server.rule(rule)
    failed = failure(fault_server, **_secrets(fault_server))
    told = "".join(traceback.format_exception(failed)) + repr(failed) + failed.raw + repr(failed.__context__)
    assert "TOPSECRET" not in told
    assert KEY in fault_server.stats().last_head


def test_all_secrets_are_sent(fault_server):
    send(fault_server, **_secrets(fault_server))
    head = fault_server.stats().last_head
    assert f"Authorization: Bearer {KEY}\r\n" in head
    assert f"X-Key: {OTHER}" in head
    assert "token=query-TOPSECRET-789" in head


def test_a_header_of_the_serving_replaces_the_usual_one(fault_server):
    send(fault_server, api_key=KEY, headers={"authorization": "Token other-one"})
    head = fault_server.stats().last_head
    assert "authorization: Token other-one" in head
    assert KEY not in head


def test_no_key_sends_no_header_and_blanks_around_one_are_cut(fault_server):
    send(fault_server)
    assert "authorization" not in fault_server.stats().last_head.lower()
    send(fault_server, api_key=f" {KEY}\n")
    assert f"Bearer {KEY}\r\n" in fault_server.stats().last_head


def test_the_serving_and_its_redaction_do_not_show_the_key(fault_server):
    serving = OpenAIServing(OpenAISpec.model_validate({"model": "m", **_secrets(fault_server)}))
    assert repr(serving) == f"OpenAIServing('m', '{fault_server.url}')"
    assert "TOPSECRET" not in repr(Redaction([KEY]))


def test_escaped_secrets_are_found_and_short_placeholders_left_alone():
    redaction = Redaction([KEY, "x", "EMPTY", ""])
    assert redaction.text(f'"{KEY}"') == '"***"'
    assert redaction.text("sk-a\\/b+c=TOPSECRET-123 sk-a%2Fb%2Bc%3DTOPSECRET-123") == "*** ***"
    assert redaction.text("x is EMPTY") == "x is EMPTY"
