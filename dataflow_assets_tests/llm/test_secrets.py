"""The key is in no file, no log, no ledger, no event and no message."""

from pathlib import Path

from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.project import KEY, Project


def test_the_key_is_nowhere(tmp_path: Path, fault_server: FaultServer) -> None:
    echo = {"kind": "status", "status": 400, "body": "you sent {authorization}"}
    fault_server.rule(echo, contains="row 3")
    project = Project(tmp_path, fault_server, [f"row {number}" for number in range(10)])
    finished = [project.run(), project.run("status"), project.run("failed", "--json"), project.run("pause")]
    fault_server.default("status", status=401, body="bad key {authorization}")
    project.write("in.jsonl", [f"other {number}" for number in range(10)])
    finished.append(project.run("resume"))
    assert KEY in fault_server.stats().last_head
    assert all(KEY not in one.out + one.err for one in finished)
    assert finished[0].code == 5 and finished[-1].code == 3
    holding = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert holding == []
