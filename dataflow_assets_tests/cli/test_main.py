"""What ends the command beside its own errors: code of the pipeline that exits, an interrupt."""

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


@pytest.mark.parametrize("command", [["operators"], ["status", "ends.yaml"]])
def test_a_reader_that_has_enough_ends_the_command_in_silence(tmp_path: Path, command: list[str]):
    (tmp_path / "ends.yaml").write_text(PIPELINE % "ends")
    (tmp_path / "ends.py").write_text("def made(row):\n    return {}\n")
    told = subprocess.Popen(
        [sys.executable, "-m", "dataflow_assets", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert told.stdout is not None
    told.stdout.close()
    assert (told.communicate()[1], told.returncode) == (b"", 1)
