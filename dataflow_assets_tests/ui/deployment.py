"""A `dagster dev` with small pipelines, and the same pipelines for the command in folders of its own."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dataflow_assets.home import SETTINGS
from dataflow_assets_tests.crash.compare import final_files
from dataflow_assets_tests.dagster_side.small_pipelines import write_pipeline, write_rows
from dataflow_assets_tests.dagster_side.subprocesses import with_package_path
from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.dagster_side.webserver import LOCATION, Webserver, dagster_dev, write_settings
from dataflow_assets_tests.ui.row_functions import GATES, HEALED
from dataflow_assets_tests.ui.shop import write_shop

STEPS = """\
  - name: watched
    type: map_python
    params: {function: "dataflow_assets_tests.ui.row_functions:watched"}
  - {name: long-enough, type: filter_length, params: {column: text, min_chars: 4}}
  - {name: unique, type: drop_duplicates, params: {columns: [text]}}
  - {name: last, type: normalize_whitespace, params: {column: text}}
"""
SHOPS = ("shop", "mended")
# By the word that each pipeline's rows begin with.
PIPELINES = {"launched": "row", "paused": "wait", "retried": "sick", "filled": "row"}
ASSETS = ["watched", "long-enough", "unique_state", "unique", "last"]
BATCHES = 4
_LAUNCH = """mutation($p: ExecutionParams!) { launchPipelineExecution(executionParams: $p) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } } } }"""


class Place(NamedTuple):
    """Files, Dagster home and gates of one who runs the pipelines of `folder`."""

    folder: Path
    name: str

    def make(self) -> None:
        """The folders, with a home."""
        for part in ("home", "root", "gates"):
            (self.folder / self.name / part).mkdir(parents=True)
        write_settings(self.folder / self.name / "home")

    @property
    def root(self) -> Path:
        """Where the pipelines' files go."""
        return self.folder / self.name / "root"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to run the pipelines here."""
        here = self.folder / self.name
        pipelines = [str(self.folder / name) for name in (*SHOPS, *PIPELINES)]
        return {
            **SETTINGS,
            "DAGSTER_HOME": str(here / "home"),
            "DATAFLOW_PIPELINES": ":".join(pipelines),
            "DATAFLOW_ROOT": str(here / "root"),
            GATES: str(here / "gates"),
        }

    def open_gates(self, numbers: range) -> None:
        """Lets the rows `wait N` pass."""
        for number in numbers:
            (self.folder / self.name / "gates" / f"wait {number}").touch()

    def wait_at(self, number: int) -> None:
        """Until a run stands at this row."""
        gate = self.folder / self.name / "gates" / f"wait {number}.reached"
        wait_until(gate.exists)

    def heal(self) -> None:
        """Sick rows are well from now on."""
        (self.folder / self.name / "gates" / HEALED).touch()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """The command, here."""
        command = [sys.executable, "-W", "ignore", "-m", "dataflow_assets", *arguments]
        environment = with_package_path(**self.environment)
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE)

    def command(self, *arguments: str) -> tuple[int, str]:
        """Its exit code and output."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=180)
        return process.returncode, output.decode()

    def status(self, pipeline: str) -> dict:
        """What `status --json` says of a pipeline."""
        code, output = self.command("status", pipeline, "--json")
        assert code == 0
        return json.loads(output)

    def left(self, pipeline: str) -> dict[str, object]:
        """All files of a pipeline, without what belongs to one run, and its status."""
        return {**final_files(self.root / pipeline), "status": self.status(pipeline)}


class Deployment(NamedTuple):
    """The server with its place, and the place of the command."""

    server: Webserver
    place: Place
    by_command: Place

    def launch(self, job: str, **config: object) -> str:
        """Launches a job as its form does; the run's id."""
        params = {
            "selector": {**LOCATION, "pipelineName": job},
            "runConfigData": json.dumps(config),
            "mode": "default",
        }
        launched = self.server.query(_LAUNCH, p=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return launched["run"]["runId"]

    def launched(self, job: str, **config: object) -> str:
        """The status in which a job's run ends; its errors where it fails."""
        run = self.launch(job, **config)
        status = self.server.finish(run)
        return f"FAILURE: {self.server.errors(run)}" if status == "FAILURE" else status

    def last_keys(self, pipeline: str) -> list[str]:
        """The batches that Dagster shows as materialized at the last step."""
        return sorted(self.server.materialized(f"{pipeline}/last"))


@contextlib.contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """The pipelines in `folder`, served by `dagster dev`."""
    for name in SHOPS:
        write_shop(folder / name, name=name)
    for name, word in PIPELINES.items():
        write_pipeline(folder / name, name, STEPS)
        write_rows(folder / name, "a", [*(f"{word} {number}" for number in range(2 * BATCHES - 1)), "no"])
    ours, theirs = Place(folder, "served"), Place(folder, "by_command")
    ours.make()
    theirs.make()
    with dagster_dev(folder, **ours.environment) as server:
        yield Deployment(server, ours, theirs)
