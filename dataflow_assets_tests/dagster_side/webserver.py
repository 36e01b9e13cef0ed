"""A real `dagster dev -w workspace.yaml` on a free port, and the GraphQL that the UI speaks with it."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from dataflow_assets.home import default_settings
from dataflow_assets_tests.dagster_side.subprocesses import REPOSITORY, with_package_path
from dataflow_assets_tests.dagster_side.waiting import wait_until

LOCATION = {"repositoryLocationName": "dataflow_assets.definitions", "repositoryName": "__repository__"}
# A run that waits in the queue is started within a second, not within five.
_QUICK = """
run_coordinator:
  module: dagster.core.run_coordinator
  class: QueuedRunCoordinator
  config: {dequeue_interval_seconds: 1}
"""
_WORKSPACE = """{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError {
    __typename ... on PythonError { message } } } } } }"""
_LAUNCH = """mutation($p: ExecutionParams!) { launchPipelineExecution(executionParams: $p) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_BACKFILL = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_BACKFILL_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status } } }"""
_RUN = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status tags { key value } } } }"
_RUN_ERRORS = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
    ... on ExecutionStepFailureEvent { error { message causes { message } errorChain {
    error { message } } } } } } } }"""
_TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) { __typename } }"""


def write_settings(home: Path) -> None:
    """The dagster.yaml of a home for tests: as a new home has it, and quick."""
    (home / "dagster.yaml").write_text(default_settings() + _QUICK)


class Webserver:
    """The server at `port`; asset names are `pipeline/name`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/graphql"

    def query(self, text: str, **variables: object) -> dict:
        """What a GraphQL query gives. Raises ConnectionError while the server is not up."""
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                found = json.load(answer)
        except urllib.error.URLError as error:
            raise ConnectionError(str(error)) from error
        assert "errors" not in found, found["errors"]
        return found["data"]

    def load_error(self) -> str | None:
        """Why the code location cannot be loaded, or None. Raises ConnectionError while it is loading."""
        entry = self.query(_WORKSPACE)["workspaceOrError"]["locationEntries"][0]["locationOrLoadError"]
        if entry is None:
            raise ConnectionError("still loading")
        return entry.get("message")

    def launch(self, *assets: str, keys: tuple[str, str] | None = None) -> str:
        """Launches a run of the assets over a range of batches, as the UI does; its id."""
        tags = {}
        if keys:
            tags = {
                "dagster/asset_partition_range_start": keys[0],
                "dagster/asset_partition_range_end": keys[1],
            }
        selection = [{"path": name.split("/")} for name in assets]
        params = {
            "selector": {**LOCATION, "pipelineName": "__ASSET_JOB", "assetSelection": selection},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        }
        launched = self.query(_LAUNCH, p=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return launched["run"]["runId"]

    def status(self, run_id: str) -> str:
        """The status of a run."""
        return self.query(_RUN, id=run_id)["runOrError"]["status"]

    def finish(self, run_id: str) -> str:
        """The status in which a run ends."""
        return wait_until(lambda: (status := self.status(run_id)) in _ENDED and status)

    def run(self, *assets: str, keys: tuple[str, str] | None = None) -> str:
        """Launches and waits: the status in which the run ends."""
        return self.finish(self.launch(*assets, keys=keys))

    def errors(self, run_id: str) -> str:
        """The messages of the failed steps of a run, with those of their causes."""
        return json.dumps(self.query(_RUN_ERRORS, id=run_id)["logsForRun"]["events"])

    def terminate(self, run_id: str) -> None:
        """Asks a run to stop, as the UI's button does."""
        assert self.query(_TERMINATE, id=run_id)["terminateRun"]["__typename"] == "TerminateRunSuccess"

    def backfill(self, assets: Sequence[str], keys: Sequence[str]) -> str:
        """Launches a backfill of the keys and waits: the status in which it ends."""
        params = {
            "assetSelection": [{"path": name.split("/")} for name in assets],
            "partitionNames": list(keys),
        }
        launched = self.query(_BACKFILL, p=params)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched

        def ended() -> str | None:
            status = self.query(_BACKFILL_STATUS, id=launched["backfillId"])["partitionBackfillOrError"][
                "status"
            ]
            return status if status.startswith("COMPLETED") or status == "FAILED" else None

        return wait_until(ended, limit_s=180)

    def asset(self, name: str, fields: str) -> dict:
        """The fields of an asset node."""
        node = f"... on AssetNode {{ {fields} }}"
        query = f"query($key: AssetKeyInput!) {{ assetNodeOrError(assetKey: $key) {{ {node} }} }}"
        return self.query(query, key={"path": name.split("/")})["assetNodeOrError"]

    def materialized(self, name: str) -> set[str]:
        """The batches that the UI shows as materialized."""
        kinds = "materializedPartitions failedPartitions"
        fields = f"assetPartitionStatuses {{ ... on DefaultPartitionStatuses {{ {kinds} }} }}"
        statuses = self.asset(name, fields)["assetPartitionStatuses"]
        assert statuses["failedPartitions"] == []
        return set(statuses["materializedPartitions"])

    def graph(self, group: str) -> dict[str, dict]:
        """The asset nodes of a group by name, with what they depend on."""
        query = "{ assetNodes { assetKey { path } groupName dependencyKeys { path } isPartitioned } }"
        nodes = self.query(query)["assetNodes"]
        return {"/".join(node["assetKey"]["path"]): node for node in nodes if node["groupName"] == group}


_ENDED = ("SUCCESS", "FAILURE", "CANCELED")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def dagster_dev(folder: Path, **environment: str) -> Iterator[Webserver]:
    """`dagster dev` in `folder`, from the first answer to a clean stop; its output is in `dev.log`."""
    port = free_port()
    workspace = str(REPOSITORY / "workspace.yaml")
    command = [sys.executable, "-m", "dagster", "dev", "-w", workspace, "-p", str(port)]
    with open(folder / "dev.log", "w") as log:
        environment = with_package_path(**environment)
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            server = Webserver(port)
            wait_until(lambda: process.poll() is not None or server.load_error() or True, limit_s=120)
            assert process.poll() is None, (folder / "dev.log").read_text()[-4000:]
            assert server.load_error() is None
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
