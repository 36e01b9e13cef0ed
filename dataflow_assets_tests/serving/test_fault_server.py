"""The fault server does what tests believe that it does."""

import http.client
import json
import subprocess
import sys
import time

import pytest

from dataflow_assets_tests.fault_server import FaultServer, content_hash
from dataflow_assets_tests.serving.asking import call_of, failure, send, send_all


def test_sequences_are_played_for_each_content_and_the_last_one_stays(fault_server):
    fault_server.rule({"kind": "status", "status": 500}, "ok")
    for text in ("a", "b"):
        assert failure(fault_server, call_of(text)).status == 500
        assert send_all(fault_server, [call_of(text)] * 2)[1].text == text
    assert fault_server.stats().per_content == {"a": 3, "b": 3}


def test_a_sequence_can_run_over_all_contents(fault_server):
    fault_server.rule({"kind": "status", "status": 500}, "ok", per="all")
    assert failure(fault_server, call_of("a")).status == 500
    assert send(fault_server, call_of("b")).text == "b"


def test_rules_match_by_content_model_path_ordinal_and_number_of_uses(fault_server):
    fault_server.rule({"kind": "ok", "text": "by content"}, contains="needle")
    fault_server.rule({"kind": "ok", "text": "by model"}, model="other")
    fault_server.rule({"kind": "ok", "text": "by path"}, path="/v1/completions")
    fault_server.rule({"kind": "ok", "text": "by ordinal"}, calls=[4])
    fault_server.rule({"kind": "ok", "text": "once"}, times=1)
    calls = [call_of("a needle"), call_of("x", "completion"), call_of("x"), call_of("x"), call_of("x")]
    found = [answer.text for answer in send_all(fault_server, calls)]
    assert found == ["by content", "by path", "once", "by ordinal", "x"]
    assert send(fault_server, model="other").text == "by model"


def test_a_share_of_contents_is_always_the_same(fault_server):
    fault_server.rule({"kind": "ok", "text": "drawn"}, share=0.3)
    calls = [call_of(str(number)) for number in range(200)]
    first = [answer.text == "drawn" for answer in send_all(fault_server, calls)]
    assert [answer.text == "drawn" for answer in send_all(fault_server, calls)] == first
    assert 30 < sum(first) < 90


def test_records_tell_who_asked_what_and_how_it_ended(fault_server):
    fault_server.rule("ok", "cut")
    send(fault_server)
    failure(fault_server)
    stats = fault_server.stats()
    first, second = stats.requests
    assert (first.ordinal, first.model, first.content, first.kind, first.status) == (
        1,
        "m",
        "hello",
        "ok",
        200,
    )
    assert (first.content_hash, first.call) == (content_hash("hello"), second.call)
    assert (first.complete, second.complete, stats.answered) == (True, False, 1)
    assert sum(stats.per_second.values()) == 2 == stats.most_within(60)


def test_a_client_that_goes_away_leaves_an_incomplete_request(fault_server):
    fault_server.rule("hang")
    failure(fault_server, read_timeout_s=0.1)
    deadline = time.monotonic() + 10
    while (stats := fault_server.stats()).in_flight and time.monotonic() < deadline:
        pass
    assert (stats.in_flight, stats.in_flight_max, stats.requests[0].complete) == (0, 1, False)


def test_refused_lasts_until_the_server_listens_again_on_the_same_port(fault_server):
    fault_server.rule({"kind": "refused", "for_s": None}, "ok")
    assert failure(fault_server).error_class == "connection"
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", fault_server.port).connect()
    fault_server.listen()
    assert send(fault_server).text == "hello"


def test_reset_forgets_rules_and_records_and_ends_what_hangs(fault_server):
    fault_server.rule("hang")
    failure(fault_server, read_timeout_s=0.1)
    fault_server.refuse()
    fault_server.reset()
    assert send(fault_server).text == "hello"
    assert fault_server.stats().count == 1


def test_too_many_in_flight_can_be_turned_away(fault_server):
    fault_server.rule({"kind": "status", "status": 429}, in_flight_over=0)
    assert failure(fault_server).status == 429


def test_a_mistake_in_a_rule_is_told(fault_server):
    with pytest.raises(ValueError, match="no behaviour 'exlode'"):
        fault_server.rule("exlode")
    with pytest.raises(ValueError, match="contain"):
        fault_server.rule("ok", contain="x")


def test_rules_of_a_file_are_there_at_the_start_and_after_a_reset(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps([{"contains": "hello", "then": {"kind": "ok", "text": "from the file"}}]))
    with FaultServer(rules) as server:
        server.reset()
        assert send(server).text == "from the file"


def test_the_server_ends_with_the_process_that_started_it():
    code = (
        "import os, signal; from dataflow_assets_tests.fault_server import FaultServer;"
        "print(FaultServer().port, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    port = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stdout)
    assert _ended(port)


def _ended(port: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            http.client.HTTPConnection("127.0.0.1", port).connect()
        except ConnectionRefusedError:
            return True
    return False
