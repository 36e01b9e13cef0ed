"""Pools of steps, in a real `dagster dev` on PostgreSQL: runs that share one wait for each other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dataflow_assets.home import SETTINGS
from dataflow_assets_tests.cluster.conftest import write_home
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.dagster_side.row_functions import GATES
from dataflow_assets_tests.dagster_side.small_pipelines import write_pipeline, write_rows
from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.dagster_side.webserver import Webserver, dagster_dev

POOLS = {"one": "key-a", "two": "key-a", "three": "key-b"}
STEP = """\
  - name: asked
    type: map_python
    pool: POOL
    params: {function: "dataflow_assets_tests.dagster_side.row_functions:wait_at_gate"}
"""


class Served(NamedTuple):
    server: Webserver
    folder: Path

    def open_gate(self, name: str) -> None:
        (self.folder / "gates" / name).touch()

    def wait_at(self, name: str) -> None:
        wait_until((self.folder / "gates" / f"{name}.reached").exists)

    def launch(self, name: str) -> str:
        """A run of the step alone; step 0 is there."""
        key = f"{name}_b00000"
        return self.server.launch(f"{name}/asked", keys=(key, key))


@pytest.fixture
def served(tmp_path: Path, database: str) -> Iterator[Served]:
    """Three pipelines, each with a row that waits at a gate of its name; their sources are read."""
    (tmp_path / "gates").mkdir()
    for name, pool in POOLS.items():
        write_pipeline(tmp_path / name, name, STEP.replace("POOL", pool))
        write_rows(tmp_path / name, name, [name])
    environment = {
        **SETTINGS,
        "DAGSTER_HOME": str(write_home(tmp_path)),
        "DATAFLOW_PIPELINES": ":".join(str(tmp_path / name) for name in POOLS),
        "DATAFLOW_ROOT": str(tmp_path / "root"),
        GATES: str(tmp_path / "gates"),
    }
    with dagster_dev(tmp_path, **environment) as server:
        runs = [server.launch(f"{name}/source") for name in POOLS]
        assert [server.finish(run) for run in runs] == ["SUCCESS"] * 3
        yield Served(server, tmp_path)


def test_runs_that_share_a_pool_wait_for_each_other_and_others_run(
    served: Served, rows_in_database: Callable[[str], int]
) -> None:
    first = served.launch("one")
    served.wait_at("one")
    second, other = served.launch("two"), served.launch("three")
    served.wait_at("three")
    assert served.server.status(second) == "QUEUED"
    for name in POOLS:
        served.open_gate(name)
    assert [served.server.finish(run) for run in (first, second, other)] == ["SUCCESS"] * 3
    assert rows_in_database("runs") == 6


def test_a_changed_pool_makes_nothing_again(tmp_path: Path, command_here: Command) -> None:
    steps = "  - {name: low, type: lowercase, params: {column: text}}\n"
    file = write_pipeline(tmp_path, steps=steps)
    write_rows(tmp_path, "a", ["One"])
    assert command_here(tmp_path, "run", "small.yaml").code == 0
    file.write_text(file.read_text().replace("lowercase,", "lowercase, pool: gpu-a100,"))
    assert "nothing to do" in command_here(tmp_path, "run", "small.yaml").out
