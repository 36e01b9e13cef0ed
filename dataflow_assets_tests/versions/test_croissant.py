"""Croissant metadata, judged and read by `mlcroissant` itself."""

import hashlib
import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.tool_environments import tool

PIPELINE = """\
name: pages
description: Pages — 网页.
license: https://creativecommons.org/licenses/by/4.0/
source: {path: in.jsonl}
batch_rows: 2
root: data
steps:
  - {name: lower, type: lowercase, params: {column: text}}
"""
ROWS = [
    {"text": "ONE", "n": 1, "share": 0.5, "good": True, "列 a/b": "值", "turns": {"a": [1]}, "nothing": None},
    {
        "text": "two 二",
        "n": 2,
        "share": 1.5,
        "good": False,
        "列 a/b": "x",
        "turns": {"a": []},
        "nothing": None,
    },
    {"text": "3", "n": 3, "share": 2.0, "good": True, "列 a/b": "007", "turns": {}, "nothing": None},
]


def mlcroissant() -> Path:
    """The real package's Python."""
    return tool("python", "mlcroissant==1.1.1", f"pyarrow=={pa.__version__}")


@pytest.fixture
def made(tmp_path: Path, command_here: Command) -> Path:
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (tmp_path / "pages.yaml").write_text(PIPELINE)
    assert command_here(tmp_path, "run", "pages.yaml").code == 0
    return tmp_path


def export(command_here: Command, folder: Path, to: str) -> dict:
    done = command_here(folder, "export", "pages.yaml", "--to", to, "--croissant", "meta/croissant.json")
    assert done.code == 0, done
    return json.loads((folder / "meta/croissant.json").read_text())


def records(folder: Path) -> list[dict]:
    """What `mlcroissant` reads, after it has validated."""
    code = """if True:
        import json, mlcroissant
        rows = mlcroissant.Dataset("meta/croissant.json").records("records")
        print(json.dumps(list(rows), default=bytes.decode))
    """
    done = subprocess.run(
        [mlcroissant(), "-c", code], cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("to", ["out.jsonl", "out.csv", "out/pages data.parquet"])
def test_mlcroissant_validates_and_reads_each_row(made: Path, command_here: Command, to: str) -> None:
    (made / "meta").mkdir()
    export(command_here, made, to)
    read = records(made)
    assert [row["records/text"] for row in read] == ["one", "two 二", "3"]
    assert [row["records/share"] for row in read] == [0.5, 1.5, 2.0]
    assert len(read[0]) == len(ROWS[0]) - to.endswith(".jsonl")


def test_nested_values_of_json_lines_are_named_for_croissant_has_no_type(
    made: Path, command_here: Command
) -> None:
    (made / "meta").mkdir()
    (records,) = export(command_here, made, "out.jsonl")["recordSet"]
    assert records["description"] == "3 records, one for each row. Besides, as JSON values: turns."


def test_the_metadata_name_the_file_and_its_hash(made: Path, command_here: Command) -> None:
    (made / "meta").mkdir()
    (file,) = export(command_here, made, "out.jsonl")["distribution"]
    assert file["contentUrl"] == "../out.jsonl"
    assert file["sha256"] == hashlib.sha256((made / "out.jsonl").read_bytes()).hexdigest()


def test_a_format_that_croissant_has_no_name_for_is_refused_first(made: Path, command_here: Command) -> None:
    done = command_here(made, "export", "pages.yaml", "--to", "out.json", "--croissant", "c.json")
    assert (done.code, (made / "out.json").exists()) == (2, False), done


def test_the_metadata_do_not_replace_the_rows(made: Path, command_here: Command) -> None:
    arguments = ("export", "pages.yaml", "--to", "rows.jsonl", "--croissant", "./rows.jsonl")
    assert command_here(made, *arguments).code == 2
    assert not (made / "rows.jsonl").exists()
