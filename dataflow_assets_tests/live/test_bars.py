from pathlib import Path

import pytest
from rich.console import Console

from dataflow_assets.cli.bars import bar_table, shown_seconds
from dataflow_assets.cli.tally import Tally
from dataflow_assets.progress import RowAnswered
from dataflow_assets.serving.usage import Usage
from dataflow_assets_tests.control.slow_project import SLOW, write_slow
from dataflow_assets_tests.crash.gate import gated
from dataflow_assets_tests.live.terminal import Terminal
from dataflow_assets_tests.plugins.installed import environment_with, install


def shown(tallies: list[Tally], width: int) -> list[str]:
    console = Console(width=width, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(bar_table(tallies, width))
    return [line.rstrip() for line in captured.get().splitlines()]


def tally(**values: object) -> Tally:
    return Tally("answers", 0.0, 10.0, **{"batches_wanted": 10, **values})  # pyright: ignore[reportArgumentType]


def test_a_wide_terminal_shows_every_number(project: Path) -> None:
    terminal = Terminal(project, "run", "four.yaml")
    assert terminal.finish() == 5
    lines = terminal.screen()
    header = next(line for line in lines if "rows/s" in line)
    assert header.split() == ["batches", "rows", "rows/s", "left", "rejected", "failed"]
    bars = {line.split()[0]: line.split()[2:] for line in lines if "━" in line}
    assert list(bars) == ["source", "lower", "sized", "long_enough", "unique_state", "unique"]
    assert (bars["sized"][:2], bars["sized"][-2:]) == (["6/6", "60"], ["0", "1"])
    assert bars["long_enough"][-2:] == ["12", "0"]
    assert bars["source"][:2] == ["6", "61"]


@pytest.mark.parametrize("columns", [30, 44, 60])
def test_a_narrow_terminal_has_fewer_columns_and_no_broken_line(project: Path, columns: int) -> None:
    terminal = Terminal(project, "run", "four.yaml", columns=columns, lines=80)
    assert terminal.finish() == 5
    lines = terminal.screen()
    header = next(place for place, line in enumerate(lines) if line.split()[:1] == ["batches"])
    assert lines[header].split()[-1] == "failed"
    bars = lines[header + 1 : header + 7]
    assert [line.split()[-1] for line in bars] == ["0", "0", "1", "0", "0", "0"]
    assert [line[:7] for line in bars] == ["source ", "lower  ", "sized  ", "long_en", "unique_", "unique "]
    assert any("(12 too_short)" in line for line in lines)


def test_a_terminal_with_few_lines_shows_the_last_steps_and_leaves_all(project: Path) -> None:
    terminal = Terminal(project, "run", "four.yaml", lines=6)
    assert terminal.finish() == 5
    assert b"steps above" in terminal.written
    assert len([line for line in terminal.screen() if "━" in line]) >= 6


def test_without_a_terminal_there_are_plain_lines(project: Path) -> None:
    terminal = Terminal(project, "run", "four.yaml", env={"TERM": "dumb"})
    assert terminal.finish() == 5
    assert b"\x1b" not in terminal.written
    assert any(line.startswith("  long_enough: 6/6 batches, 59 rows") for line in terminal.screen())


def test_a_step_is_shown_before_its_first_batch_and_a_stop_leaves_the_terminal_whole(tmp_path: Path) -> None:
    folder = write_slow(tmp_path / "project").parent
    terminal = Terminal(folder, "run", "slow.yaml", env={**SLOW, **gated(folder)})
    lines = terminal.wait_to_see("7/40")
    assert any(line.startswith("slow ") and "0:" in line for line in lines)
    terminal.press_ctrl_c()
    terminal.wait_to_see("SIGINT: stopping after what is in hand")
    terminal.press_ctrl_c()
    assert terminal.finish() == 130
    assert not terminal.cursor_is_hidden()


def test_one_stop_ends_with_the_state_of_the_bars(tmp_path: Path) -> None:
    folder = write_slow(tmp_path / "project").parent
    terminal = Terminal(folder, "run", "slow.yaml", env={**SLOW, **gated(folder)})
    terminal.wait_to_see("7/40")
    terminal.press_ctrl_c()
    (folder / "gate").unlink()
    assert terminal.finish() == 3
    assert any("/40" in line and line.startswith("slow ") for line in terminal.screen())
    assert any("stopped by SIGINT" in line for line in terminal.screen())
    assert not terminal.cursor_is_hidden()


def test_what_a_plugin_says_does_nothing_to_the_terminal(project: Path, tmp_path: Path) -> None:
    site = install(tmp_path, broken="Broken")
    path = environment_with(site)["PYTHONPATH"]
    terminal = Terminal(project, "run", "four.yaml", env={"PYTHONPATH": path})
    assert terminal.finish() == 5
    assert b"\x1b[2J" not in terminal.written
    assert any(r"no more\x1b[2J of in_b00000" in line.replace("\n", "") for line in terminal.screen())
    assert any(line.startswith("unique ") and "6/6" in line for line in terminal.screen())


def test_a_step_that_asks_a_model_shows_tokens_and_cost(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "run", "text2qa")
    assert terminal.finish() == 0
    header = next(line for line in terminal.screen() if "rows/s" in line)
    assert header.split()[-2:] == ["tokens", "cost"]
    pairs = next(line for line in terminal.screen() if line.startswith("pairs "))
    assert int(pairs.split()[-2].replace(",", "")) > 1000


def test_rows_of_a_batch_in_hand_are_counted_one_by_one() -> None:
    asking = tally(rows_wanted=100)
    for _ in range(25):
        asking.add_row(RowAnswered("answers", False, Usage(calls=1, tokens_in=10, tokens_out=2, cost=0.5)))
    asking.add_row(RowAnswered("answers", True, Usage()))
    asking.last = 26.0
    assert (asking.share, asking.rows_per_s, asking.seconds_left) == (0.26, 1.0, 74.0)
    header, line = shown([asking], 120)
    assert header.split() == ["batches", "rows", "rows/s", "left", "rejected", "failed", "tokens", "cost"]
    assert line.split()[2:] == ["0/10", "26", "1", "1:14", "0", "1", "300", "12.5000"]


@pytest.mark.parametrize("width", [10, 20, 30, 40, 60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    some = [tally(made=3, batches=3, committed_rows=1_234_567, asks_a_model=True), tally(rejected=10**9)]
    some[1].name = "a_step_with_a_very_long_name_that_nobody_can_read_on_a_phone"
    assert max(map(len, shown(some, width))) <= width


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.4, "0:00"), (59.6, "1:00"), (3599, "59:59"), (7384, "2:03:04"), (3 * 86_400, "3 days")],
)
def test_the_time_left_is_short(seconds: float | None, text: str) -> None:
    assert shown_seconds(seconds) == text


def test_the_time_left_is_that_of_the_batches_that_were_made_here() -> None:
    assert tally(batches=6, made=5).seconds_left == 8.0
    assert tally(batches=6, made=0).seconds_left is None
    assert tally(batches=10, made=10).seconds_left is None


def test_a_name_with_escape_sequences_is_shown_as_such() -> None:
    evil = Tally("\x1b[31mred\x07", 0.0, 0.0)
    assert shown([evil], 120)[1].startswith(r"\x1b[31mred\x07")
