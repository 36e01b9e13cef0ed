"""Fixtures that several folders of tests share."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.cli.main import main
from dataflow_assets.home import SETTINGS
from dataflow_assets_tests.crash.command import Finished, run
from dataflow_assets_tests.crash.project import write_project

Command = Callable[..., Finished]
LONG = "DATAFLOW_LONG_TESTS"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked long, kills at more places, unless it is asked for."""
    if os.environ.get(LONG):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the small project, never run."""
    write_project(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of an undisturbed run of the small project by the real command."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write_project(folder)
    assert run(folder).code == 5
    return folder / "data"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster instance in memory."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def command_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, for tests that end nothing: `command_here(folder, "run", "four.yaml")`."""

    def command(folder: Path, *arguments: str) -> Finished:
        for name in ("DAGSTER_HOME", *SETTINGS):
            monkeypatch.setenv(name, "")
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["dataflow-assets", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Finished(int(end.value.code or 0), *capsys.readouterr())

    return command
