"""The shared cases of LLM steps through the whole command: 17 (failed rows) and 26 (order)."""

import json
from pathlib import Path

import pytest

from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.project import Project

CASES = Path(__file__).parents[1] / "cases"
QUEUE, ORDER = CASES / "17_failed_rows_are_not_done", CASES / "26_order_and_alignment"


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def without_row_id(rows: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "row_id"} for row in rows]


def asks(name: str, model: str, output: str, **more: object) -> dict:
    params = {"prompt": "{q}", "output_column": output, "serving": model}
    return {"name": name, "type": "generate", "params": params, **more}


def project_of(folder: Path, server: FaultServer, case: Path, steps: list[dict], copies: int = 1) -> Project:
    project = Project(folder, server, [], steps, {"max_retries": 2}, batch_rows=2)
    (folder / "in.jsonl").write_text(
        (case / "input.jsonl").read_text(encoding="utf-8") * copies, encoding="utf-8"
    )
    default = project.pipeline["servings"]["default"]  # pyright: ignore[reportIndexIssue]
    project.pipeline["servings"] = {
        model: {**default, "model": model, "concurrency": 8} for model in ("model_a", "model_b")
    }
    project.save()
    return project


def test_case_17_failed_rows_wait_and_only_they_are_asked_again(
    tmp_path: Path, fault_server: FaultServer
) -> None:
    for row in lines(QUEUE / "input.jsonl"):
        wrong = {"kind": "status", "status": 500}
        text = f"答{row['id']}"
        fault_server.rule(
            {"kind": "ok", "text": text} if row["id"] not in (2, 5) else wrong, contains=row["q"]
        )
    project = project_of(tmp_path, fault_server, QUEUE, [asks("answered", "model_a", "answer")])
    assert project.run().code == 5
    failed = project.rows(part="_failed")
    assert [(row["id"], row["q"], row["attempts"]) for row in failed] == [(2, "问2", 3), (5, "问5", 3)]
    assert all("500" in row["error_message"] for row in failed)
    assert [row["id"] for row in project.rows()] == [1, 3, 4, 6]

    fault_server.reset()
    for number in (2, 5):
        fault_server.rule({"kind": "ok", "text": f"答{number}"}, contains=f"问{number}")
    assert project.run("retry-failed").code == 0
    assert sorted(fault_server.stats().per_content) == ["问2", "问5"]
    assert without_row_id(project.rows()) == lines(QUEUE / "expected_final.jsonl")
    assert project.rows(part="_failed") == []

    fault_server.reset()
    assert project.run().code == 0
    assert fault_server.stats().count == 0


@pytest.mark.parametrize("copies", [1, 2])
def test_case_26_every_answer_is_on_its_row(tmp_path: Path, fault_server: FaultServer, copies: int) -> None:
    told = json.loads((ORDER / "input.server.json").read_text(encoding="utf-8"))
    for number, delay_ms in told["model_a"]["delay_ms"].items():
        text, delay_s = f"model_a:q{number}", delay_ms / 1000
        fault_server.rule(
            {"kind": "ok", "text": text, "delay_s": delay_s}, model="model_a", contains=f"q{number}"
        )
    for number in told["model_b"]["fail"]:
        fault_server.rule({"kind": "status", "status": 400}, model="model_b", contains=f"q{number}")
    fault_server.rule({"kind": "ok", "text": "model_b:{content}"}, model="model_b")
    steps = [
        asks("a", "model_a", "a", depends_on=["source"]),
        asks("b", "model_b", "b", depends_on=["source"]),
        {
            "name": "both",
            "type": "select_columns",
            "params": {"keep": ["id", "q", "a", "b"]},
            "depends_on": ["a", "b"],
        },
    ]
    project = project_of(tmp_path, fault_server, ORDER, steps, copies)
    assert project.run().code == 5
    expected = lines(ORDER / "expected_a.jsonl")
    assert without_row_id(project.rows(1)) == expected * copies
    assert [row["id"] for row in project.rows(2, "_failed")] == [3, 4] * copies
    assert without_row_id(project.rows(3)) == lines(ORDER / "expected_merged.jsonl") * copies
