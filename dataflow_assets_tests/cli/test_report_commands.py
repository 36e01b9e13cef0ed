"""`report` and `trace` as commands, on the small project."""

import json
from pathlib import Path

import pytest

from dataflow_assets_tests.cli.conftest import Call
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.report.hostile_rows import TEXTS, hostile_work


def test_the_page_and_the_card_are_written(call: Call, done: Path, tmp_path: Path):
    page, card = tmp_path / "out" / "r.html", tmp_path / "out" / "r.md"
    ended = call("report", "four.yaml", "--to", str(page), "--card", str(card), folder=done)
    assert (ended.code, ended.err) == (0, "")
    assert f"{page}: {page.stat().st_size:,} bytes" in ended.out
    assert "<title>four: report</title>" in page.read_text("utf-8")
    assert card.read_text("utf-8").startswith("---\npretty_name: four\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "neither --to FILE.html nor --card FILE.md is given"),
        (("--to", "r.txt"), "r.txt ends in '.txt'; the page is written as .html"),
        (("--card", "r"), "r ends in ''; the card is written as .md"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    call: Call,
    done: Path,
    arguments: tuple[str, ...],
    told: str,
):
    before = set(done.iterdir())
    ended = call("report", "four.yaml", *arguments, folder=done)
    assert (ended.code, told in ended.err) == (2, True), ended
    assert set(done.iterdir()) == before


def test_trace_prints_the_life_of_a_row(call: Call, done: Path):
    ended = call("trace", "four.yaml", "in:50", folder=done)
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "in:50: in.jsonl, line 50; batch in_b00004",
        "  n: 48",
        "  text: <b>Row 3</b> more more more",
        "1 lower (lowercase): changed",
        "  - text: <b>Row 3</b> more more more",
        "  + text: <b>row 3</b> more more more",
        "2 sized (map_python): changed",
        "  + chars: 27",
        "3 long_enough (filter_length): kept as it was",
        "4 unique (drop_duplicates): rejected: duplicate",
        "  duplicate_of: in:4",
        "  in:4 has text: <b>row 3</b> more more more",
    ]


def test_trace_as_json_has_the_same(call: Call, done: Path):
    life = json.loads(call("trace", "four.yaml", "in:50", "--json", folder=done).out)
    assert (life["row_id"], life["batch"], life["row"]["n"]) == ("in:50", "in_b00004", 48)
    assert [passage["outcome"] for passage in life["passages"]] == ["kept", "kept", "kept", "rejected"]
    assert life["passages"][3]["details"] == {"duplicate_of": "in:4"}


def test_an_unknown_row_is_a_mistake_of_the_user(call: Call, done: Path):
    ended = call("trace", "four.yaml", "in:999", folder=done)
    assert (ended.code, ended.out) == (2, "")
    assert "no row 'in:999' from in.jsonl; near it there are 'in:61'" in ended.err


def test_hostile_rows_do_nothing_to_the_terminal(command_here: Command, tmp_path: Path):
    work = hostile_work(tmp_path)
    (tmp_path / "p.yaml").write_text(
        "name: p\nroot: data\nsource: {path: in.jsonl}\n"
        "steps:\n  - {name: kept, type: lowercase, params: {column: name}}\n"
    )
    rows = work.layout.step(0).read("in_b00000")
    assert rows is not None
    for row_id in rows["row_id"].to_pylist()[: len(TEXTS)]:
        ended = command_here(tmp_path, "trace", "p.yaml", row_id)
        assert ended.code == 0, ended
        assert not set(ended.out + ended.err) & set("\x1b\x07\x9b\r\x00\u202e\u2066\ufeff")
    assert command_here(tmp_path, "trace", "p.yaml", "in:12", "--json").out.isascii()
