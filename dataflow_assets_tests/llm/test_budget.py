"""A budget is never exceeded, not over resumes and not over kills; the run stands paused at it."""

from pathlib import Path

from dataflow_assets_tests.crash.command import finish
from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.moments import wait_for_requests
from dataflow_assets_tests.llm.project import ASKS, Project

PRICE = {"input": 1_000_000, "output": 1_000_000}
ASKS_SHORT = {**ASKS, "params": {**ASKS["params"], "max_tokens": 20}}  # pyright: ignore[reportGeneralTypeIssues]


def project_of(folder: Path, server: FaultServer, **pipeline: object) -> Project:
    texts = [f"row {number}" for number in range(300)]
    serving = {"price": PRICE, "concurrency": 8}
    return Project(folder, server, texts, [ASKS_SHORT], serving, **pipeline)


def billed(server: FaultServer, tokens_a_call: int) -> int:
    return server.stats().count * tokens_a_call


def test_three_resumes_do_not_exceed_it(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default(tokens_in=3, tokens_out=3)
    project = project_of(tmp_path, fault_server, budget={"max_cost": 600})
    assert project.run().code == 3
    for _ in range(3):
        done = project.run("resume")
        assert done.code == 3 and "budget" in done.err
    assert 400 <= billed(fault_server, 6) <= 600
    status = project.status()
    assert (status["state"], status["paused"]["cause"]) == ("paused", "budget")


def test_kills_do_not_exceed_it(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default(tokens_in=3, tokens_out=3, delay_s=0.05)
    project = project_of(tmp_path, fault_server, budget={"max_tokens": 900})
    for moment in (20, 60, 90):
        process = project.start("resume")
        wait_for_requests(fault_server, moment, process)
        process.kill()
        finish(process)
    project.run("resume")
    assert billed(fault_server, 6) <= 900


def test_a_raised_budget_goes_on_to_the_end(tmp_path: Path, fault_server: FaultServer) -> None:
    fault_server.default(tokens_in=3, tokens_out=3)
    project = project_of(tmp_path, fault_server, budget={"max_cost": 300})
    assert project.run().code == 3
    project.pipeline["budget"] = {"max_cost": 3000}
    project.save()
    assert project.run("resume").code == 0
    assert fault_server.stats().count == 300


def test_a_budget_without_a_longest_answer_is_refused(tmp_path: Path, fault_server: FaultServer) -> None:
    project = Project(tmp_path, fault_server, ["row"], budget={"max_cost": 1})
    done = project.run()
    assert done.code == 2 and "max_tokens" in done.err
    assert fault_server.stats().count == 0


def test_a_budget_of_an_unknown_price_is_refused(tmp_path: Path, fault_server: FaultServer) -> None:
    project = Project(tmp_path, fault_server, ["row"], [ASKS_SHORT], budget={"max_cost": 1})
    done = project.run()
    assert done.code == 2 and "price" in done.err
