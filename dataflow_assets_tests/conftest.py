"""Fixtures that several folders of tests share."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets_tests.crash.command import run
from dataflow_assets_tests.crash.project import write_project


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
