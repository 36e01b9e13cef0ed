"""Case 17 with a model: rows whose calls ran out are not done; a retry asks for them alone."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.fault_server.fixture import fault_server, fault_server_process
from dataflow_assets_tests.llm.project import Project

__all__ = ["fault_server", "fault_server_process"]
CASE = Path(__file__).parents[1] / "cases" / "17_failed_rows_are_not_done"
ILL = ("[2]", "[5]")


@pytest.fixture
def asked(tmp_path: Path, fault_server: FaultServer) -> Iterator[Project]:
    """A run in which the server answered rows 2 and 5 with 500 only; then it is well."""
    for text in ILL:
        fault_server.rule("status", contains=text)
    texts = [f"[{n}]" for n in range(1, 7)]
    project = Project(
        tmp_path, fault_server, texts, serving={"max_retries": 2, "concurrency": 2}, batch_rows=3
    )
    assert project.run().code == 5
    fault_server.reset()
    yield project


def test_rows_whose_calls_ran_out_wait_with_their_attempts(asked: Project) -> None:
    assert [row["id"] for row in asked.rows()] == [1, 3, 4, 6]
    waiting = asked.rows(part="_failed")
    assert [(row["text"], row["attempts"], row["error_class"]) for row in waiting] == [
        (text, 3, "server_error") for text in ILL
    ]
    assert all("500" in row["error_message"] and row["failed_at"] for row in waiting)


def test_a_retry_asks_for_them_alone_and_a_run_for_none(asked: Project, fault_server: FaultServer) -> None:
    assert asked.run("retry-failed").code == 0
    assert fault_server.stats().per_content == dict.fromkeys(ILL, 1)
    assert [row["answer"] for row in asked.rows()] == [f"[{n}]" for n in range(1, 7)]
    assert asked.rows(part="_failed") == []
    assert asked.run().code == 0
    assert fault_server.stats().count == 2


def test_the_usage_of_a_retried_batch_adds_up(asked: Project) -> None:
    folder = asked.folder / "dataflow_data" / "asks" / "asks_step1" / "_commits"
    before = [json.loads(file.read_bytes())["usage"]["calls"] for file in sorted(folder.glob("*.json"))]
    asked.run("retry-failed")
    after = [json.loads(file.read_bytes())["usage"]["calls"] for file in sorted(folder.glob("*.json"))]
    assert after == [calls + 1 for calls in before]
