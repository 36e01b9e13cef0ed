"""A row that ends the process of the run itself, where no worker processes were asked for."""

from pathlib import Path

from dataflow_assets_tests.crash.command import run
from dataflow_assets_tests.crash.project import FUNCTIONS, write_project

DEADLY = """steps:
  - {name: sized, type: map_python, params: {function: "FUNCTIONS:deadly", columns: {chars: int64}}}
""".replace("FUNCTIONS", FUNCTIONS)


def test_it_is_found_when_runs_die_at_one_place(tmp_path: Path) -> None:
    write_project(tmp_path, steps=DEADLY)
    ends = [run(tmp_path)]
    while ends[-1].code < 0 and len(ends) < 5:
        ends.append(run(tmp_path))
    assert len(ends) > 1 and ends[-1].code == 5
    assert "killed at one place" in ends[-1].err
    failed = "".join(file.read_text() for file in tmp_path.glob("data/four/four_step1/_failed/*.jsonl"))
    assert failed.count("\n") == 1 and "WorkerDied" in failed and '"n":25' in failed
    assert run(tmp_path).code == 5
