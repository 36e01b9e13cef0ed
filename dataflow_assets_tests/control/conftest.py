"""The slow project, and what an undisturbed run makes of it."""

from pathlib import Path

import pytest

from dataflow_assets_tests.control.slow_project import write_slow
from dataflow_assets_tests.crash.command import command
from dataflow_assets_tests.crash.compare import final_files


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A folder with the slow project, never run."""
    return write_slow(tmp_path / "project").parent


@pytest.fixture(scope="session")
def slow_result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The final files of an undisturbed run of the slow project."""
    folder = write_slow(tmp_path_factory.mktemp("undisturbed_slow")).parent
    assert command(folder, "run", "slow.yaml").code == 0
    return final_files(folder / "data")
