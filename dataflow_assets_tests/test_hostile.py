"""Hostile input: names and links cannot leave the root, data cannot steer the terminal, limits hold."""

import gzip
import json
import pickle
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.sources import compression
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.compare import rows
from dataflow_assets_tests.crash.project import row, write_project, write_rows
from dataflow_assets_tests.resume.runs import edit, made, work_in

LOWER = "steps:\n  - {name: lower, type: lowercase}\n"


@pytest.fixture
def one_step(tmp_path: Path) -> Path:
    """A project with one step."""
    write_project(tmp_path / "project", steps=LOWER)
    return tmp_path / "project"


@pytest.mark.parametrize("link", ["four", "four/four_step0", "four/four_step1"])
def test_a_link_out_of_the_root_is_refused(
    command_here: Command, one_step: Path, tmp_path: Path, link: str
) -> None:
    (tmp_path / "outside").mkdir()
    (one_step / "data" / link).parent.mkdir(parents=True)
    (one_step / "data" / link).symlink_to(tmp_path / "outside")
    ended = command_here(one_step, "run", "four.yaml")
    assert (ended.code, ended.is_clean) == (2, True), ended
    assert str(one_step / "data" / link) in ended.err and "outside of the root" in ended.err
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("link", ["_commits", "_rejected", "_state", "in_b00000.jsonl"])
def test_a_link_within_a_step_reaches_nothing_outside(
    command_here: Command, one_step: Path, tmp_path: Path, link: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.json").write_text("mine")
    folder = one_step / "data" / "four" / "four_step0"
    folder.mkdir(parents=True)
    (folder / link).symlink_to(outside / "mine.json" if "." in link else outside)
    command_here(one_step, "run", "four.yaml")
    assert [path.name for path in outside.iterdir()] == ["mine.json"]
    assert (outside / "mine.json").read_text() == "mine"


def test_a_link_in_place_of_the_lock_is_not_followed(
    command_here: Command, one_step: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    (one_step / "data" / "four").mkdir(parents=True)
    (one_step / "data" / "four" / ".lock").symlink_to(tmp_path / "mine")
    ended = command_here(one_step, "run", "four.yaml")
    assert (ended.code, ended.is_clean) == (1, True), ended
    assert ".lock" in ended.err
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("field", ["name", "prefix"])
@pytest.mark.parametrize("name", ["../up", "/tmp/x", "..", "a/b", "a\\\\b", "", "~"])
def test_a_name_that_would_leave_the_root(one_step: Path, field: str, name: str) -> None:
    text = (
        (one_step / "four.yaml")
        .read_text()
        .replace("name: four\n", "" if field == "name" else "name: four\n", 1)
    )
    (one_step / "four.yaml").write_text(f'{field}: "{name}"\n{text}')
    with pytest.raises(ConfigError, match=field):
        work_in(one_step)


def test_a_file_name_that_would_leave_the_root(one_step: Path, instance: dg.DagsterInstance) -> None:
    (one_step / "inbox").mkdir()
    write_rows(one_step / "inbox" / "x..%2f..%2f;rm -rf \x1b[31m.jsonl", [row(1)])
    made(one_step, instance, input=str(one_step / "inbox"))
    [file] = (one_step / "data" / "four" / "four_step1").glob("*.jsonl")
    assert set(file.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.")


def test_control_characters_are_shown_escaped(command_here: Command, one_step: Path) -> None:
    text = "\x1b]0;owned\x07 \x1b[2J red \x9b31m \r\n over \u202e rtl"
    write_rows(one_step / "in.jsonl", [{"text": text, "\x1b[1mname": 1}])
    command_here(one_step, "run", "four.yaml")
    for arguments in (
        ("sample", "four.yaml", "lower"),
        ("sample", "four.yaml", "lower", "--diff"),
        ("status", "four.yaml"),
    ):
        shown = command_here(one_step, *arguments)
        assert shown.code == 0
        assert not set(shown.out + shown.err) & set("\x1b\x07\x9b\r\u202e"), shown


def test_control_characters_in_errors_are_shown_escaped(command_here: Command, one_step: Path) -> None:
    ended = command_here(one_step, "run", "four.yaml", "--input", "no\x1b[31mfile.jsonl")
    assert ended.code == 2
    assert "\x1b" not in ended.out + ended.err


def test_pickle_is_refused_unless_allowed_by_name(command_here: Command, one_step: Path) -> None:
    refused = command_here(one_step, "run", "four.yaml", "--format", "pickle")
    assert (refused.code, refused.is_clean) == (2, True), refused
    assert "allow_pickle" in refused.err


def test_a_pickle_in_place_of_a_step_file_is_never_read(one_step: Path, instance: dg.DagsterInstance) -> None:
    edit(one_step / "four.yaml", "root: data", "root: data\nformat: pickle\nallow_pickle: true")
    made(one_step, instance)
    file = one_step / "data" / "four" / "four_step0" / "in_b00000.pickle"
    marker = one_step / "executed"
    file.write_bytes(pickle.dumps(Bomb(marker)))
    edit(one_step / "four.yaml", "type: lowercase", "type: strip_html")
    made(one_step, instance)
    assert not marker.exists()


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple:
        return Path.touch, (self.marker,)


def test_a_line_over_the_limit_is_set_aside(one_step: Path, instance: dg.DagsterInstance) -> None:
    edit(one_step / "four.yaml", "path: in.jsonl", "path: in.jsonl, max_line_bytes: 1000")
    write_rows(one_step / "in.jsonl", [row(1), {"n": 2, "text": "long " * 1000}, row(3)])
    made(one_step, instance)
    assert [each["n"] for each in rows(one_step / "data", 1)] == [1, 3]
    [bad] = rows(one_step / "data", 0, "_rejected")
    assert bad["line"] == 2 and "max_line_bytes" in bad["reject_detail"]


def test_a_bomb_is_refused(
    one_step: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "EXPANSION_FLOOR_BYTES", 100_000)
    line = json.dumps({"text": "a" * 1000}).encode() + b"\n"
    (one_step / "in.jsonl.gz").write_bytes(gzip.compress(line * 2000))
    with pytest.raises(SourceError, match="max_expansion"):
        made(one_step, instance, input=str(one_step / "in.jsonl.gz"))


def test_a_pattern_that_backtracks_for_ever_fails_its_row(command_here: Command, tmp_path: Path) -> None:
    params = '{pattern: "(a+)+$", replacement: "", engine: python, timeout_s: 0.2}'
    write_project(tmp_path, steps=f"steps:\n  - {{name: masked, type: regex_replace, params: {params}}}\n")
    write_rows(tmp_path / "in.jsonl", [row(0), {"n": 1, "text": "a" * 5000 + "!"}, row(2)])
    assert command_here(tmp_path, "run", "four.yaml").code == 5
    assert [each["n"] for each in rows(tmp_path / "data", 1)] == [0, 2]
    [failed] = rows(tmp_path / "data", 1, "_failed")
    assert (failed["error_class"], failed["n"]) == ("PatternTimeout", 1)
