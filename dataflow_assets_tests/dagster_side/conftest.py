"""One `dagster dev` for all tests that need it."""

from pathlib import Path
from typing import NamedTuple

import pytest

from dataflow_assets.home import SETTINGS
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.dagster_side.row_functions import GATES
from dataflow_assets_tests.dagster_side.small_pipelines import STEPS, write_pipeline, write_rows
from dataflow_assets_tests.dagster_side.webserver import Webserver, dagster_dev, write_settings

GATED = """\
  - name: gated
    type: map_python
    params: {function: "dataflow_assets_tests.dagster_side.row_functions:wait_at_gate"}
  - {name: after, type: lowercase, params: {column: text}}
"""


class Deployment(NamedTuple):
    """A server with the pipelines `served` and `gated-one`, and where its files are."""

    server: Webserver
    folder: Path
    environment: dict[str, str]

    def work(self, name: str) -> PipelineWork:
        """A pipeline with its files."""
        pipeline = load_pipeline(self.folder / name / f"{name}.yaml")
        return PipelineWork(pipeline.with_changes(root=str(self.folder / "root")))

    def committed(self, name: str, step: str) -> set[str]:
        """The batches of a step that exist."""
        work = self.work(name)
        folder = work.folder_of(step)
        return {batch for batch in work.known_manifest().batches if folder.record(batch) is not None}

    def open_gate(self, *names: str) -> None:
        """Lets the rows of these texts pass."""
        for name in names:
            (self.folder / "gates" / name).touch()

    def came_to_gate(self, name: str) -> bool:
        """Whether a run waits at the row of this text, or waited there."""
        return (self.folder / "gates" / f"{name}.reached").exists()


@pytest.fixture(scope="session")
def deployment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deployment")
    for part in ("home", "gates"):
        (folder / part).mkdir()
    write_settings(folder / "home")
    write_pipeline(folder / "served", "served", STEPS)
    write_rows(folder / "served", "a", [f"Row {n} | <b>" for n in range(11)] + ["Row 0 | <b>"])
    write_pipeline(folder / "gated-one", "gated-one", GATED)
    write_rows(folder / "gated-one", "a", [f"g{n}" for n in range(8)])
    environment = {
        **SETTINGS,
        "DAGSTER_HOME": str(folder / "home"),
        "DATAFLOW_PIPELINES": f"{folder / 'served'}:{folder / 'gated-one'}",
        "DATAFLOW_ROOT": str(folder / "root"),
        GATES: str(folder / "gates"),
    }
    with dagster_dev(folder, **environment) as server:
        yield Deployment(server, folder, environment)
