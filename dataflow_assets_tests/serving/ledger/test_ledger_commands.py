"""`dataflow-assets ledger`, on a real ledger."""

from pathlib import Path

import orjson
import pytest

from dataflow_assets.serving.ledger import Ledger
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.serving.ledger.answers import get, put

PIPELINE = "name: tea\nroot: data\nsource: {path: tea.jsonl}\nsteps: [{name: low, type: lowercase}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a pipeline whose ledger holds three answers, one of them found once."""
    (tmp_path / "tea.yaml").write_text(PIPELINE)
    with Ledger.at(tmp_path / "data" / "ledger.sqlite") as ledger:
        put(ledger, "a", "b", "c")
        get(ledger, "a")
    return tmp_path


@pytest.mark.parametrize("which", [["tea.yaml"], ["--root", "data"], ["--ledger", "data/ledger.sqlite"]])
def test_stats_of_a_ledger_however_it_is_named(folder: Path, command_here: Command, which: list[str]) -> None:
    (line,) = orjson.loads(command_here(folder, "ledger", "stats", "--json", *which).out)
    assert (line["model"], line["answers"], line["cost"], line["hits"]) == ("m", 3, 1.5, 1)


def test_stats_are_a_table(folder: Path, command_here: Command) -> None:
    header, line = command_here(folder, "ledger", "stats", "tea.yaml").out.splitlines()
    assert header.split()[:2] == ["model", "answers"]
    assert line.split()[:6] == ["m", "3", "30", "6", "1.5000", "1,080"]


def test_stats_of_a_ledger_in_postgres(tmp_path: Path, command_here: Command, database: str) -> None:
    with Ledger(database) as ledger:
        put(ledger, "a")
    ended = command_here(tmp_path, "ledger", "stats", "--ledger", database, "--json")
    assert orjson.loads(ended.out)[0]["answers"] == 1


def test_prune_says_what_is_gone_and_what_is_left(folder: Path, command_here: Command) -> None:
    ended = command_here(folder, "ledger", "prune", "tea.yaml", "--max-size", "800B", "--older-than", "1d")
    assert (ended.code, ended.out) == (0, "1 answers removed, 2 kept in 720 bytes\n")
    ended = command_here(folder, "ledger", "prune", "tea.yaml", "--older-than", "0s")
    assert ended.out == "2 answers removed, 0 kept in 0 bytes\n"
    assert "holds no answers" in command_here(folder, "ledger", "stats", "tea.yaml").out


def test_export_writes_the_answers(folder: Path, command_here: Command) -> None:
    ended = command_here(folder, "ledger", "export", "tea.yaml", "--to", "answers.jsonl")
    assert ended.out == "3 answers in answers.jsonl\n"
    lines = map(orjson.loads, (folder / "answers.jsonl").read_bytes().splitlines())
    assert sorted(line["key"] for line in lines) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["stats"], 1, "there is no ledger at"),
        (["prune", "tea.yaml"], 2, "--older-than"),
        (["prune", "tea.yaml", "--older-than", "3 months"], 2, "s, m, h, d, w"),
        (["prune", "tea.yaml", "--max-size", "2"], 2, "GiB"),
        (["stats", "tea.yaml", "--ledger", "x"], 2, "leave out PIPELINE"),
        (["stats", "unknown"], 2, "unknown"),
        (["stats", "--ledger", "tea.yaml"], 1, "tea.yaml"),
    ],
)
def test_mistakes_are_told(
    folder: Path, command_here: Command, arguments: list[str], code: int, said: str
) -> None:
    ended = command_here(folder, "ledger", *arguments)
    assert (ended.code, ended.is_clean) == (code, True) and said in ended.err
