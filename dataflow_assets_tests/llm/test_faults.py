"""What a server does wrong: each row is in the output or in the queue, asked as often as stated."""

from pathlib import Path

from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.project import ASKS, Project

ROWS_FAILED = 5
TRIES = 3
QUOTA = {"error": {"code": "insufficient_quota", "type": "insufficient_quota", "message": "quota"}}
FILTERED = {"error": {"code": "content_filter", "message": "filtered"}}
TOO_LONG = {"error": {"code": "context_length_exceeded", "message": "too long"}}
# behaviour, class of the failed row, calls sent
FOR_EVER: dict[str, tuple[dict, str, int]] = {
    "s500": ({"kind": "status", "status": 500}, "server_error", TRIES),
    "s502 html": ({"kind": "html", "status": 502}, "server_error", TRIES),
    "s429": ({"kind": "status", "status": 429}, "rate_limited", TRIES),
    "s408": ({"kind": "status", "status": 408}, "timeout", TRIES),
    "s400": ({"kind": "status", "status": 400}, "bad_request", 1),
    "s422": ({"kind": "status", "status": 422}, "bad_request", 1),
    "s413": ({"kind": "status", "status": 413}, "too_large", 1),
    "s400 filter": ({"kind": "status", "status": 400, "body": FILTERED}, "content_filter", 1),
    "s400 long": ({"kind": "status", "status": 400, "body": TOO_LONG}, "context_length", 1),
    "reset": ({"kind": "reset"}, "connection", TRIES),
    "hang": ({"kind": "hang"}, "timeout", TRIES),
    "html": ({"kind": "html"}, "bad_response", TRIES),
    "error object": ({"kind": "error_object"}, "bad_response", TRIES),
    "broken body": ({"kind": "broken_body"}, "bad_response", TRIES),
    "null content": ({"kind": "null_content"}, "empty", TRIES),
    "no content": ({"kind": "missing_content"}, "empty", TRIES),
    "blank": ({"kind": "ok", "text": " \n "}, "empty", TRIES),
    "empty choices": ({"kind": "empty_choices"}, "bad_response", TRIES),
    "choices null": ({"kind": "no_choices"}, "bad_response", TRIES),
    "wrong choices": ({"kind": "wrong_choices"}, "wrong_choices", TRIES),
    "length": ({"kind": "length"}, "truncated", 1),
    "filter": ({"kind": "content_filter"}, "content_filter", 1),
    "refusal": ({"kind": "refusal"}, "refusal", 1),
    "stream cut": ({"kind": "stream_cut"}, "cut_stream", TRIES),
    "body cut": ({"kind": "cut"}, "cut_stream", TRIES),
    "refuses": ({"kind": "ok", "text": "I'm sorry, but I can't help with that."}, "gate:no_refusal", 1),
}
# behaviour of the first call; the second is answered
PASSING = {
    "once 500": {"kind": "status", "status": 500},
    "once seconds": {"kind": "status", "status": 429, "headers": {"Retry-After": "0.03"}},
    "once date": {"kind": "status", "status": 503, "retry_after_date_s": 1},
    "once reset": {"kind": "reset"},
    "once html": {"kind": "html"},
    "once null": {"kind": "null_content"},
    "once cut": {"kind": "stream_cut"},
    "once json": {"kind": "broken_body"},
}
FINE = {
    "slow": {"kind": "slow", "pause_s": 0.0005},
    "stream": {"kind": "stream"},
    "shuffled": {"kind": "shuffled"},
    "plain": {"kind": "ok"},
    "braces {text} {{ }} ${HOME}": {"kind": "ok"},
    "<|im_start|>system\nassistant: user:": {"kind": "ok"},
}


def row(text: str) -> str:
    """The text of the row; none is part of another."""
    return f"[{text}]"


def test_every_row_is_in_the_output_or_in_the_queue_with_its_class(
    tmp_path: Path, fault_server: FaultServer
) -> None:
    texts = [*FOR_EVER, *PASSING, *FINE]
    for text, (behaviour, _error, _calls) in FOR_EVER.items():
        fault_server.rule(behaviour, contains=row(text))
    for text, behaviour in PASSING.items():
        fault_server.rule(behaviour, "ok", contains=row(text))
    for text, behaviour in FINE.items():
        fault_server.rule(behaviour, contains=row(text))
    serving = {"max_retries": TRIES - 1, "read_timeout_s": 0.5, "max_wait_s": 1.5, "concurrency": 8}
    project = Project(tmp_path, fault_server, [row(text) for text in texts], serving=serving)
    done = project.run()
    assert (done.code, done.is_clean) == (ROWS_FAILED, True), done
    assert project.failed() == {row(text): error for text, (_, error, _) in FOR_EVER.items()}
    assert project.answers() == {row(text): row(text) for text in [*PASSING, *FINE]}
    sent = fault_server.stats().per_content
    expected = {text: calls for text, (_, _, calls) in FOR_EVER.items()}
    expected |= dict.fromkeys(PASSING, 2) | dict.fromkeys(FINE, 1)
    assert sent == {row(text): calls for text, calls in expected.items()}


def test_a_wrong_key_pauses_and_fills_no_queue(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default("status", status=401)
    project = Project(tmp_path, fault_server, [f"row {n}" for n in range(200)], serving={"concurrency": 4})
    done = project.run()
    assert done.code == 3 and "wrong key?" in done.err
    assert project.rows(part="_failed") == []
    assert fault_server.stats().count <= 3 + 4
    assert project.status()["state"] == "paused"


def test_a_quota_that_is_used_up_pauses_too(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default("status", status=429, body=QUOTA)
    project = Project(tmp_path, fault_server, [f"row {n}" for n in range(50)], serving={"concurrency": 2})
    assert project.run().code == 3
    assert fault_server.stats().count <= 5


def test_a_server_that_is_down_pauses_and_fills_no_queue(tmp_path: Path, fault_server: FaultServer) -> None:
    texts = [f"row {n}" for n in range(300)]
    project = Project(tmp_path, fault_server, texts, serving={"max_retries": 1, "concurrency": 8})
    fault_server.refuse()
    done = project.run()
    assert done.code == 3 and "resume" in done.err
    assert project.rows(part="_failed") == []
    fault_server.listen()
    assert project.run("resume").code == 0
    assert len(project.rows()) == 300


def test_structured_answers_are_parsed_or_fail_with_their_class(
    tmp_path: Path, fault_server: FaultServer
) -> None:
    fenced = {"kind": "ok", "text": '```json\n{"answer": "yes"}\n```'}
    fault_server.rule(fenced, contains="fenced")
    fault_server.rule({"kind": "broken_json"}, contains="broken")
    fault_server.rule({"kind": "ok", "text": '{"answer": 5}'}, contains="shape")
    fault_server.rule({"kind": "ok", "text": "no JSON"}, fenced, contains="second")
    params = {"prompt": "{text}", "schema": {"answer": "string"}}
    steps = [{"name": "answered", "type": "generate_structured", "params": params}]
    texts = ["fenced", "broken", "shape", "second try"]
    project = Project(tmp_path, fault_server, texts, steps, serving={"max_retries": 1})
    assert project.run().code == ROWS_FAILED
    assert project.failed() == {"broken": "json_parse", "shape": "schema_invalid"}
    assert set(project.answers()) == {"fenced", "second try"}


def test_answers_keep_to_their_rows_whatever_their_order(tmp_path: Path, fault_server: FaultServer) -> None:
    for number in range(40):
        fault_server.rule({"kind": "ok", "delay_s": (number * 7 % 11) / 100}, contains=f"row {number}.")
    texts = [f"row {number}." for number in range(40)]
    project = Project(tmp_path, fault_server, [*texts, *texts], serving={"concurrency": 8}, batch_rows=7)
    assert project.run().code == 0
    assert [row["answer"] for row in project.rows()] == [*texts, *texts]
    assert fault_server.stats().count == 40


def test_calls_keep_to_the_set_rate(tmp_path: Path, fault_server: FaultServer) -> None:
    serving = {"requests_per_minute": 1200, "concurrency": 32}
    project = Project(tmp_path, fault_server, [f"row {n}" for n in range(60)], [ASKS], serving)
    assert project.run().code == 0
    stats = fault_server.stats()
    assert stats.count == 60
    late = 2  # what a busy server takes up at once though it was sent evenly
    assert stats.most_within(1.0) <= 21 + late
