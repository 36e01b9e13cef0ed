"""The command called in this process: what it prints, and its exit code."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from dataflow_assets.cli.main import main
from dataflow_assets_tests.crash.command import Finished

Call = Callable[..., Finished]


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Call]:
    """`call("list")` in an empty folder; `call("status", "four.yaml", folder=F)` in F.

    What the command sets for Dagster in the environment is gone after the test.
    """
    monkeypatch.delenv("DATAFLOW_PIPELINES", raising=False)
    monkeypatch.delenv("DATAFLOW_ROOT", raising=False)

    def called(*arguments: str, folder: Path = tmp_path) -> Finished:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["dataflow-assets", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return Finished(end.value.code if isinstance(end.value.code, int) else 0, out, err)

    with mock.patch.dict(os.environ):
        yield called


@pytest.fixture
def done(undisturbed: Path) -> Path:
    """The folder of the small project after its run; to be read only."""
    return undisturbed.parent
