"""`dagster asset materialize` in a folder that `dataflow-assets init` prepared."""

import subprocess
import sys

import dagster as dg
import pytest

from dataflow_assets.home import SETTINGS
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject
from dataflow_assets_tests.dagster_side.subprocesses import with_package_path

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def folder(tmp_path):
    """A folder with a pipeline, in which `init` was called; its commands know no DAGSTER_HOME."""
    SmallProject(tmp_path).write_rows("a", ["One", "two", "Two", "x", "y", "three"])
    command(tmp_path, "-m", "dataflow_assets", "init")
    return tmp_path


def command(folder, *arguments):
    values = with_package_path(DATAFLOW_PIPELINES=str(folder), DATAFLOW_ROOT=str(folder / "root"))
    environment = {key: value for key, value in values.items() if key not in {"DAGSTER_HOME", *SETTINGS}}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def materialize(folder, selection, *options):
    module = ("-m", "dataflow_assets.definitions")
    return command(folder, "-m", "dagster", "asset", "materialize", *module, "--select", selection, *options)


def test_a_range_is_made_in_the_home_that_init_made(folder):
    materialize(folder, 'key:"small/source"')
    steps = 'key:"small/lower" or key:"small/long-enough"'
    materialize(folder, steps, "--partition-range", "a_b00000...a_b00001")
    with dg.DagsterInstance.from_config(str(folder / ".dagster_home")) as instance:
        project = SmallProject(folder, instance=instance)
        assert project.materialized("long-enough") == {"a_b00000", "a_b00001"}
        assert project.metadata("long-enough", "a_b00001")["rows_in"] == 2


def test_the_whole_group_is_run_with_a_range_and_our_command_has_nothing_left(folder):
    materialize(folder, 'key:"small/source"')
    materialize(folder, "group:small", "--partition-range", "a_b00000...a_b00002")
    assert "nothing to do" in command(folder, "-m", "dataflow_assets", "run", "small").stdout
