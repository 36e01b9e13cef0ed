import json
from pathlib import Path

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control.slow_project import (
    waiting_run,
    write_slow,
)
from dataflow_assets_tests.crash.command import command, finish, start
from dataflow_assets_tests.crash.gate import wait_until
from dataflow_assets_tests.live.terminal import Terminal

HOSTILE = "\x1b[2J\x1b]0;owned\x07<b>x\u202e"


def slow(tmp_path: Path, batches: int = 40) -> Path:
    return write_slow(tmp_path / "project", batches=batches).parent


def test_status_is_redrawn_until_the_run_ends(tmp_path: Path) -> None:
    folder = slow(tmp_path)
    with waiting_run(folder) as process:
        terminal = Terminal(folder, "status", "slow.yaml", "--watch")
        terminal.wait_to_see("slow: running, 200 rows read")
        terminal.wait_to_see("7/40")
    assert finish(process).code == 0
    assert terminal.finish() == 0
    lines = terminal.screen()
    assert [line for line in lines if line.startswith("slow: ")] == ["slow: done, 200 rows read"]
    assert not any("7/40" in line for line in lines)
    assert not terminal.cursor_is_hidden()


def test_status_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    folder = slow(tmp_path)
    with waiting_run(folder) as process:
        terminal = Terminal(folder, "status", "slow.yaml", "--watch")
        terminal.wait_to_see("running")
        terminal.press_ctrl_c()
        assert terminal.finish() == 0
        assert b"Traceback" not in terminal.written and not terminal.cursor_is_hidden()
    assert finish(process).code == 0


def test_status_as_json_is_a_line_for_each_change(tmp_path: Path) -> None:
    folder = slow(tmp_path)
    with waiting_run(folder) as process:
        watching = start(folder, "status", "slow.yaml", "--watch", "--json")
        wait_until(lambda: "running" in watching.texts()[0], watching)
    assert finish(process).code == 0
    states = [json.loads(line)["state"] for line in finish(watching).out.splitlines()]
    assert states[0] == "running" and states[-1] == "done"


def test_status_of_what_is_done_is_shown_once(done_project: Path, command_here: Command) -> None:
    plain = command_here(done_project, "status", "four.yaml").out
    assert command_here(done_project, "status", "four.yaml", "--watch").out == plain


def test_sample_shows_new_batches_as_they_are_committed(tmp_path: Path) -> None:
    folder = slow(tmp_path, batches=10)
    with waiting_run(folder) as process:
        watching = start(folder, "sample", "slow.yaml", "slow", "--watch", "-n", "1")
        wait_until(lambda: "in_b00006: 5 rows in, 5 out" in watching.texts()[0], watching)
        assert "in_b00005" not in watching.texts()[0]
    assert finish(process).code == 0
    out = finish(watching).out
    assert [line.split(":")[0] for line in out.splitlines() if " rows in, " in line] == [
        f"in_b0000{number}" for number in (6, 7, 8, 9)
    ]
    assert out.count("  chars: ") == 4


def test_sample_waits_for_the_first_batch_and_says_so(tmp_path: Path) -> None:
    folder = slow(tmp_path)
    with waiting_run(folder) as process:
        watching = start(folder, "sample", "slow.yaml", "unique", "--watch")
        wait_until(lambda: "has no such rows yet" in watching.texts()[0], watching)
    assert finish(process).code == 0
    assert "in_b00039: 5 rows in" in finish(watching).out


def test_sample_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    folder = slow(tmp_path)
    with waiting_run(folder) as process:
        terminal = Terminal(folder, "sample", "slow.yaml", "slow", "--watch")
        terminal.wait_to_see("in_b00006")
        terminal.press_ctrl_c()
        assert terminal.finish() == 0
        assert b"Traceback" not in terminal.written
    assert finish(process).code == 0


def test_rows_with_escape_sequences_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    folder = slow(tmp_path, batches=1)
    rows = [{"n": number, "text": HOSTILE} for number in range(5)]
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert command(folder, "run", "slow.yaml").code == 0
    terminal = Terminal(folder, "sample", "slow.yaml", "slow", "--watch", "-n", "1")
    assert terminal.finish() == 0
    assert b"\x1b[2J" not in terminal.written and b"\x07" not in terminal.written
    assert any(r"\x1b[2J\x1b]0;owned\x07<b>x\u202e" in line for line in terminal.screen())
