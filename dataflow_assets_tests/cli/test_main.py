"""What ends the command beside its own errors: code that exits, an interrupt, a reader that is gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow_assets_tests.cli.conftest import Call

PIPELINE = """name: ends
source: in.jsonl
steps:
  - {name: made, type: map_python, params: {function: "%s:made"}}
"""


@pytest.mark.parametrize(
    ("module", "ends", "code", "message"),
    [
        ("ends_by_exit", "sys.exit()", 5, "SystemExit"),
        (
            "ends_by_interrupt",
            "raise KeyboardInterrupt",
            130,
            "error: interrupted; what was committed is kept",
        ),
    ],
)
def test_a_function_that_wants_the_end_does_not_get_it_in_silence(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    ends: str,
    code: int,
    message: str,
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{module}.py").write_text(f"import sys\ndef made(row):\n    {ends}\n")
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "ends.yaml").write_text(PIPELINE % module)
    ended = call("run", "ends.yaml")
    assert ended.code == code
    assert message in ended.err + call("failed", "ends.yaml").out


def test_code_that_exits_where_no_row_is_to_blame_ends_the_command_with_an_error(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "exits_at_import.py").write_text("import sys\nsys.exit()\n")
    (tmp_path / "ends.yaml").write_text(
        "name: ends\nsource: {generator: 'exits_at_import:rows'}\n"
        "steps:\n  - {name: low, type: lowercase, params: {column: text}}\n"
    )
    ended = call("run", "ends.yaml")
    assert ended.code == 1
    assert ended.err.startswith("error: code of the pipeline ended the command: sys.exit() was called")


def test_a_reader_that_has_seen_enough_is_no_mistake_of_the_pipeline():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "dataflow_assets", "operators"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")
