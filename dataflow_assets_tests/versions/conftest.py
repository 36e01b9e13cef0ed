"""A small project to be locked and versioned, and a git repository with DVC around it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import environment
from dataflow_assets_tests.crash.project import row, write_rows
from dataflow_assets_tests.tool_environments import tool

PIPELINE = """\
name: pages
description: To be versioned.  # a comment
source: {path: in.jsonl}
batch_rows: 10
root: data
steps:
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: marked, type: "marks:Mark", params: {column: text, words: words.txt}}
  - {name: long_enough, type: filter_length, params: {column: text, min_chars: 12}}
"""
OPERATOR = '''
from dataflow_assets.operators.operator import ColumnParams, TextFilter


class MarkParams(ColumnParams):
    words: str


class Mark(TextFilter):
    """Keeps every text."""

    name, Params = "mark", MarkParams

    def reason(self, text):
        return None
'''
Git = Callable[..., str]


def write_pages(folder: Path) -> Path:
    """The project in `folder`; returns its pipeline's file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "in.jsonl", [row(number) for number in range(40)], bad_line_after=None)
    (folder / "marks.py").write_text(OPERATOR)
    (folder / "words.txt").write_text("a\n")
    (folder / "pages.yaml").write_text(PIPELINE)
    return folder / "pages.yaml"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder with the project, never run."""
    return write_pages(tmp_path / "project").parent


class Repository:
    """Programs run in a git repository with DVC: `dvc("repro")` gives what it printed."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home

    def run(self, *command: str | Path) -> str:
        """What the program says. Raises AssertionError where it fails."""
        values = {
            "HOME": str(self.home),
            "PATH": f"{self.home}:/usr/bin:/bin",
            "DVC_NO_ANALYTICS": "1",
            "DVC_SITE_CACHE_DIR": str(self.home / "site"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command, cwd=self.folder, env=environment(values), capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def git(self, *arguments: str) -> str:
        """A git command."""
        return self.run("git", *arguments)

    def dvc(self, *arguments: str) -> str:
        """A DVC command."""
        return self.run(dvc_program(), *arguments)

    def ours(self, *arguments: str) -> str:
        """A command of ours."""
        return self.run("dataflow-assets", *arguments)

    def commit(self, message: str) -> None:
        """Commits all, outputs that DVC keeps aside."""
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def clone(self, folder: Path) -> "Repository":
        """A fresh clone, without what DVC keeps."""
        self.git("clone", "-q", str(self.folder), str(folder))
        return Repository(folder, self.home)


def dvc_program() -> Path:
    """The real DVC."""
    return tool("dvc", "dvc==3.67.1")


@pytest.fixture
def repository(pages: Path, tmp_path: Path) -> Repository:
    """The project in a git repository with DVC and a local remote; nothing was run."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dataflow-assets").write_text(f'#!/bin/sh\nexec {sys.executable} -m dataflow_assets "$@"\n')
    (home / "dataflow-assets").chmod(0o755)
    (home / ".gitconfig").write_text("[user]\nname = tests\nemail = tests@example.org\n")
    made = Repository(pages, home)
    dvc_program()
    made.git("init", "-q")
    made.dvc("init", "-q")
    made.dvc("remote", "add", "-q", "-d", "store", str(tmp_path / "remote"))
    (pages / ".gitignore").write_text(".dagster_home\n.env\n__pycache__\n")
    return made
