import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import command, environment
from dataflow_assets_tests.views.hostile_pipeline import made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline's folder after a run."""
    folder = tmp_path_factory.mktemp("odd")
    made(folder)
    return folder


def test_the_table_shows_control_characters_as_escapes(command_here: Command, folder: Path):
    done = command_here(folder, "sql", "odd.yaml", "SELECT text, meta FROM source WHERE n IS NULL")
    assert done.code == 0
    assert r"<p>two, " '"quoted"' r"\nline \x1b[31m</p>" in done.out
    assert "\x1b" not in done.out


def test_more_rows_than_are_shown_are_told(command_here: Command, folder: Path):
    done = command_here(folder, "sql", "odd.yaml", "FROM source", "-n", "2")
    assert "the first 2 rows; -n shows more, --to FILE writes all" in done.out
    assert "in:3" not in done.out


def test_json_has_the_values_as_they_are(command_here: Command, folder: Path):
    done = command_here(folder, "sql", "odd.yaml", "SELECT code, meta FROM source LIMIT 2", "--json")
    assert json.loads(done.out) == [
        {"code": "007", "meta": {"день": [1.5, None]}},
        {"code": "", "meta": 7},
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1.5 AS a UNION ALL SELECT 'nan'::DOUBLE", "json has no such number"),
        ("SELECT 9223372036854775808 AS a", "out of range"),
    ],
)
def test_json_that_cannot_be_written_is_not_begun(
    command_here: Command, folder: Path, query: str, words: str
):
    done = command_here(folder, "sql", "odd.yaml", query, "--json")
    assert (done.code, done.out) == (1, "") and words in done.err


def test_a_file_has_all_rows(command_here: Command, folder: Path, tmp_path: Path):
    to = tmp_path / "rows.parquet"
    done = command_here(folder, "sql", "odd.yaml", "SELECT row_id, n FROM source", "--to", str(to))
    assert done.out == f"5 rows in {to}\n"
    assert pq.read_table(to)["n"].to_pylist() == [3, None, -(2**63), 2**63 - 1, 0]


def test_without_a_query_the_views_are_listed(command_here: Command, folder: Path):
    done = command_here(folder, "sql", "odd.yaml")
    assert [line.split()[:2] for line in done.out.splitlines()[1:]][:3] == [
        ["source", "5"],
        ["source_rejected", "1"],
        ["plain", "4"],
    ]


def test_a_mistake_ends_with_code_2_and_prints_nothing(command_here: Command, folder: Path):
    done = command_here(folder, "sql", "odd.yaml", "SELECT 1 AS a, 2 AS a", "--json")
    assert (done.code, done.out) == (2, "")


def test_the_command_leaves_nothing_behind(folder: Path, tmp_path: Path):
    before = sorted(folder.rglob("*"))
    done = command(folder, "sql", "odd.yaml", "SELECT count(*) AS n FROM plain")
    assert (done.code, done.out.split()) == (0, ["n", "4"])
    assert sorted(folder.rglob("*")) == before


def test_the_command_starts_without_duckdb():
    code = "import sys, dataflow_assets.cli.main; sys.exit('duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0


def test_what_a_query_gives_does_not_replace_the_source(command_here: Command, folder: Path):
    before = (folder / "in.jsonl").read_bytes()
    refused = command_here(folder, "sql", "odd.yaml", "SELECT 1 AS a", "--to", "in.jsonl")
    assert (refused.code, (folder / "in.jsonl").read_bytes()) == (2, before)
    assert "in.jsonl is the pipeline's own source" in refused.err
