"""A step of calls that is killed, paused or stopped at any moment goes on and pays nothing twice."""

import random
import signal
import time
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import finish
from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.moments import wait_for_requests
from dataflow_assets_tests.llm.project import ASKS, Project

ROWS, CONCURRENCY, MOMENTS = 2000, 32, 20
SERVING = {"concurrency": CONCURRENCY}
TEXTS = [f"row {number}" for number in range(ROWS)]


def moments(seed: int) -> list[int]:
    """Counts of requests since the last start at which something happens.

    Until a command has stopped, some more are sent: with those the sum stays below all rows.
    """
    return [random.Random(seed + n).randrange(1, 30) for n in range(MOMENTS)]


@pytest.mark.long
def test_twenty_kills_repeat_no_more_than_what_was_in_flight_or_just_answered(
    tmp_path: Path, fault_server: FaultServer
) -> None:
    fault_server.default(delay_s=0.02)
    project = Project(tmp_path, fault_server, TEXTS, serving=SERVING, batch_rows=100)
    seen = 0
    for moment in moments(1):
        process = project.start()
        assert wait_for_requests(fault_server, seen + moment, process)
        process.kill()
        finish(process)
        seen = fault_server.stats().count
    assert project.run().code == 0
    assert [row["answer"] for row in project.rows()] == TEXTS
    assert fault_server.stats().count - ROWS <= MOMENTS * (CONCURRENCY + CONCURRENCY // 8)


@pytest.mark.long
def test_twenty_pauses_repeat_nothing(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default(delay_s=0.3)
    project = Project(tmp_path, fault_server, TEXTS, serving=SERVING, batch_rows=100)
    seen, command = 0, "run"
    for moment in moments(2):
        process = project.start(command)
        assert wait_for_requests(fault_server, seen + moment, process)
        project.pause("lunch")
        assert finish(process).code == 3
        state = project.state()
        assert state is not None and (state.state, state.why) == ("paused", "lunch")
        seen, command = fault_server.stats().count, "resume"
    assert project.run("resume").code == 0
    assert [row["answer"] for row in project.rows()] == TEXTS
    assert fault_server.stats().count == ROWS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_in_flight(
    tmp_path: Path, fault_server: FaultServer, number: signal.Signals
) -> None:
    fault_server.default(delay_s=0.2)
    project = Project(tmp_path, fault_server, TEXTS[:300], serving=SERVING)
    process = project.start()
    assert wait_for_requests(fault_server, 100, process)
    process.send_signal(number)
    assert finish(process).code == 3
    stats = fault_server.stats()
    assert stats.answered == stats.count
    assert project.run().code == 0
    assert fault_server.stats().count == 300


def test_a_stop_comes_within_a_second_and_the_slowest_call(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default(delay_s=0.5)
    project = Project(tmp_path, fault_server, TEXTS[:500], serving=SERVING)
    process = project.start()
    assert wait_for_requests(fault_server, 64, process)
    asked = time.time()
    process.send_signal(signal.SIGTERM)
    finish(process)
    last = max(one.time for one in fault_server.stats().requests)
    assert last - asked <= 1.0, "a call was sent more than a second after the stop"


def test_paused_between_files_and_scopes_the_result_is_the_same(
    tmp_path: Path, fault_server: FaultServer
) -> None:
    fault_server.default(delay_s=0.2)
    steps = [{"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}}, ASKS]
    source, serving = {"path": "part*.jsonl"}, {"concurrency": 8}
    project = Project(tmp_path, fault_server, [], steps, serving, source=source)
    project.write("part1.jsonl", TEXTS[:150])
    project.write("part2.jsonl", [*TEXTS[100:250], *TEXTS[:20]])
    seen, command = 0, "run"
    for moment in random.Random(3).sample(range(1, 15), 3):
        process = project.start(command)
        assert wait_for_requests(fault_server, seen + moment, process)
        project.pause()
        assert finish(process).code == 3
        seen, command = fault_server.stats().count, "resume"
    assert project.run("resume").code == 0
    assert [row["answer"] for row in project.rows(2)] == TEXTS[:250]
    assert fault_server.stats().count == 250
