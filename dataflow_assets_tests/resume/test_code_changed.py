"""The user's own code changes: before a run it counts, during a run it counts for the next one."""

from pathlib import Path

import pytest

from dataflow_assets_tests.crash.project import write_project
from dataflow_assets_tests.resume.runs import work_in

STEPS = 'steps:\n  - {name: numbered, type: map_python, params: {function: "MODULE:numbered"}}\n'


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The module with the function, beside the pipeline."""
    module = tmp_path / f"code_of_{tmp_path.name}.py"
    module.write_text("def numbered(row):\n    return {}\n")
    write_project(tmp_path, rows=30, steps=STEPS.replace("MODULE", module.stem))
    return module


def test_code_edited_during_a_run_counts_for_the_next(code: Path) -> None:
    operator = work_in(code.parent).pipeline.operator("numbered")
    before = operator.identity()
    code.write_text(code.read_text().replace("{}", '{"n": 1}'))
    assert operator.identity() == before
    assert work_in(code.parent).pipeline.operator("numbered").identity() != before
