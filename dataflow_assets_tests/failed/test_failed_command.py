"""`failed`, `retry-failed` and `put-back` as a person types them."""

import json
from pathlib import Path

import pytest

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.failed.project import ANSWERED, FILE, IN_THREE, LOWER, UNIQUE, heal, write_project


@pytest.fixture
def ill(tmp_path: Path, command_here: Command) -> Path:
    """A project of which rows failed in two steps."""
    write_project(tmp_path, ANSWERED, LOWER, IN_THREE, sick=[1, 2, 3, 5, 6])
    assert command_here(tmp_path, "run", FILE).code == 5
    return tmp_path


def test_failed_rows_are_counted_by_step_and_class_and_shown(ill: Path, command_here: Command) -> None:
    lines = [line.split() for line in command_here(ill, "failed", FILE).out.splitlines()]
    assert lines[0] == ["step", "class", "rows", "parked"]
    assert lines[1] == ["answered", "ValueError", "5", "0"]
    assert lines[4] == ["answered", "ValueError", "in:2", "1", "row", "1", "is", "sick\\x1b[31m"]
    assert len(lines) == 7


def test_json_has_all_rows_and_no_control_character(ill: Path, command_here: Command) -> None:
    out = command_here(ill, "failed", FILE, "--json", "--max-attempts", "1").out
    batches = json.loads(out)
    rows = [row for batch in batches for row in batch["rows"]]
    assert [(row["id"], row["tags"], row["parked"]) for row in rows] == [
        (n, [n], True) for n in (1, 2, 3, 5, 6)
    ]
    assert [batch["batch"] for batch in batches] == ["in_b00000", "in_b00001"]
    assert "\x1b" not in out and rows[0]["error_message"].endswith("\x1b[31m")


def test_filters_leave_rows_out(ill: Path, command_here: Command) -> None:
    for choice in (["--step", "lower"], ["--class", "KeyError"], ["--parked"]):
        assert command_here(ill, "failed", FILE, *choice).out == "queue: no such failed rows\n"
    unknown = command_here(ill, "failed", FILE, "--step", "anwsered")
    assert unknown.code == 2 and "did you mean 'answered'" in unknown.err


def test_parked_rows_go_out_and_come_back_edited(ill: Path, command_here: Command) -> None:
    parked = ("--parked", "--max-attempts", "1")
    assert (
        "5 failed rows in out/rows.jsonl"
        in command_here(ill, "failed", FILE, *parked, "--to", "out/rows.jsonl").out
    )
    rows = [json.loads(line) for line in (ill / "out" / "rows.jsonl").open()]
    edited = [{**row, "id": row["id"] + 100} for row in rows]
    (ill / "out" / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in edited))
    ended = command_here(ill, "put-back", FILE, "--step", "answered", "out/rows.jsonl")
    assert ended.code == 0, ended.err
    assert "answered: 5 rows in 2 batches tried again: 5 done, 0 rejected, 0 failed" in ended.out
    assert command_here(ill, "put-back", FILE, "--step", "answered", "--drop").code == 5


def test_rows_of_several_steps_are_not_mixed_in_one_file(ill: Path, command_here: Command) -> None:
    (ill / "data" / "queue" / "queue_step3" / "in_b00002.jsonl").unlink()
    heal(ill, [8])
    assert command_here(ill, "run", FILE).code == 5
    ended = command_here(ill, "failed", FILE, "--to", "rows.jsonl")
    assert ended.code == 2 and "rows failed in the steps answered, parts" in ended.err
    assert "1 failed rows" in command_here(ill, "failed", FILE, "--step", "parts", "--to", "rows.jsonl").out


def test_failed_rows_are_written_as_jsonl_only(ill: Path, command_here: Command) -> None:
    ended = command_here(ill, "failed", FILE, "--to", "rows.txt")
    assert ended.code == 2 and "rows.txt ends in '.txt'" in ended.err


def test_a_retry_says_what_became_of_the_rows(ill: Path, command_here: Command) -> None:
    heal(ill, [1])
    ended = command_here(ill, "retry-failed", FILE)
    assert ended.code == 5
    assert "  answered: 5 rows in 2 batches tried again: 4 done, 0 rejected, 1 failed\n" in ended.out
    assert "1 rows failed; `dataflow-assets failed` lists them" in ended.out
    heal(ill)
    assert command_here(ill, "retry-failed", FILE).code == 0
    assert "nothing to do" in command_here(ill, "retry-failed", FILE).out


def test_put_back_needs_a_file(ill: Path, command_here: Command) -> None:
    ended = command_here(ill, "put-back", FILE, "--step", "answered")
    assert ended.code == 2 and "FILE is missing" in ended.err


def test_before_the_first_run_there_is_nothing(tmp_path: Path, command_here: Command) -> None:
    write_project(tmp_path, ANSWERED, UNIQUE)
    assert command_here(tmp_path, "failed", FILE).out == "queue: no such failed rows\n"
    ended = command_here(tmp_path, "retry-failed", FILE)
    assert ended.code == 1 and "was not read" in ended.err
