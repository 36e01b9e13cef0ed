import subprocess
import sys
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import PACKAGE_ROOT, command, environment


def tool(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    module = [sys.executable, "-m", *arguments]
    return subprocess.run(module, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("arguments", [["operator", "few_words"], ["pipeline", "my-pages"]])
def test_the_test_of_a_scaffold_passes(tmp_path: Path, arguments: list[str]):
    assert command(tmp_path, "new", *arguments).code == 0
    ran = tool(tmp_path, "pytest", f"test_{arguments[1]}.py")
    assert ran.returncode == 0, ran.stdout
    assert "1 passed" in ran.stdout


def test_a_new_operator_runs_in_a_new_pipeline(tmp_path: Path):
    command(tmp_path, "new", "operator", "few_words")
    command(tmp_path, "new", "pipeline", "pages")
    text = (tmp_path / "pages.yaml").read_text("utf-8")
    step = "  - {name: enough_words, type: few_words:FewWords, params: {min_words: 4}}\n"
    (tmp_path / "pages.yaml").write_text(text + step)
    assert command(tmp_path, "run", "pages.yaml").code == 0
    command(tmp_path, "export", "pages.yaml", "--to", "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_text() == '{"text":"The first text, with white space to tidy."}\n'


def test_the_files_of_an_operator_are_told_with_their_use(tmp_path: Path):
    told = command(tmp_path, "new", "operator", "few_words").out
    assert told.splitlines()[:2] == written(tmp_path) == ["few_words.py", "test_few_words.py"]
    assert "type: few_words:FewWords\n" in told


def test_the_files_of_a_pipeline_are_told_with_their_use(tmp_path: Path):
    told = command(tmp_path, "new", "pipeline", "pages").out
    assert (
        sorted(told.splitlines()[:3]) == written(tmp_path) == ["pages.jsonl", "pages.yaml", "test_pages.py"]
    )
    assert "dataflow-assets run pages.yaml\n" in told


def test_a_new_operator_has_at_most_15_lines(tmp_path: Path):
    command(tmp_path, "new", "operator", "few_words")
    assert len((tmp_path / "few_words.py").read_text().splitlines()) <= 15


def test_scaffolds_are_formatted_and_linted(tmp_path: Path):
    command(tmp_path, "new", "operator", "few_words")
    command(tmp_path, "new", "pipeline", "pages")
    settings = ["--config", str(PACKAGE_ROOT / "pyproject.toml")]
    formatted = tool(tmp_path, "ruff", "format", "--check", *settings)
    assert formatted.returncode == 0, formatted.stdout
    linted = tool(tmp_path, "ruff", "check", "--ignore", "D", *settings)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("there", ["pages.yaml", "pages.jsonl", "test_pages.py"])
def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path, there: str):
    (tmp_path / there).write_text("mine")
    ended = command(tmp_path, "new", "pipeline", "pages")
    assert ended.code == 2
    assert there in ended.err
    assert (written(tmp_path), (tmp_path / there).read_text()) == ([there], "mine")


@pytest.mark.parametrize(
    "name",
    ["json", "lowercase", "class", "My_Op", "my-op", "../up", "1st", "", "a" * 65, "\x1b[31m", "naïve"],
)
def test_a_name_that_no_operator_can_have_is_a_mistake(tmp_path: Path, name: str):
    ended = command(tmp_path, "new", "operator", name)
    assert (ended.code, ended.is_clean, written(tmp_path)) == (2, True, [])
    assert "\x1b" not in ended.err


@pytest.mark.parametrize("name", ["../up", "/tmp/pages", "My", "", "con", "a" * 65, "naïve"])
def test_a_name_that_no_pipeline_can_have_is_a_mistake(tmp_path: Path, name: str):
    ended = command(tmp_path, "new", "pipeline", name)
    assert (ended.code, ended.is_clean, written(tmp_path)) == (2, True, [])


@pytest.mark.parametrize("name", ["text_clean", "text-clean"])
def test_a_name_that_a_pipeline_has_already_is_a_mistake(tmp_path: Path, name: str):
    ended = command(tmp_path, "new", "pipeline", name)
    assert (ended.code, ended.is_clean, written(tmp_path)) == (2, True, [])
    assert f"there is a pipeline {name!r} already" in ended.err and "text_clean.yaml" in ended.err
