"""A real MLflow: its file store in each run of the tests, a server process where one is installed."""

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from dataflow_assets_tests.crash.command import Finished, environment, finish, start
from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.dagster_side.webserver import free_port
from dataflow_assets_tests.plugins.test_hooks import materialize

SERVER_VARIABLE = "DATAFLOW_MLFLOW"


@pytest.fixture
def file_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tracking URI on the disk."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return f"file://{tmp_path}/mlruns"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `mlflow server`; of the executable that DATAFLOW_MLFLOW names, else of this one's."""
    executable = os.environ.get(SERVER_VARIABLE)
    if executable is None or shutil.which(executable) is None:
        pytest.skip(f"{SERVER_VARIABLE} names no `mlflow` that can serve; its package pins old versions")
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    command = [executable, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    places = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder)]
    values = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            [*command, *places], env=values, stdout=log, stderr=log, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until(lambda: process.poll() is not None or is_up(url), limit_s=120)
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def with_plugin(project: Path, settings: str = "{}") -> Path:
    file = project / "four.yaml"
    file.write_text(file.read_text() + f"plugins:\n  mlflow: {settings}\n")
    return project


def run_with(project: Path, uri: str, *arguments: str) -> Finished:
    values = environment({"MLFLOW_TRACKING_URI": uri, "MLFLOW_ALLOW_FILE_STORE": "true"})
    return finish(start(project, *(arguments or ("run",)), "four.yaml", env=values))


def runs(uri: str, experiment: str = "dataflow") -> list[Run]:
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    return [] if found is None else list(client.search_runs([found.experiment_id], order_by=["start_time"]))


def check_run(uri: str, run: Run) -> None:
    """What a whole run of the small project leaves."""
    metrics, params, tags = run.data.metrics, run.data.params, run.data.tags
    assert (run.info.status, run.info.run_name, tags["dataflow.outcome"]) == ("FINISHED", "four", "done")
    numbers = {name: metrics[f"sized/{name}"] for name in ("rows_in", "rows_out", "rejected", "failed")}
    assert numbers == {"rows_in": 60, "rows_out": 59, "rejected": 0, "failed": 1}
    assert metrics["unique/batches"] == 6 and metrics["unique/wall_seconds"] > 0
    assert params["long_enough.min_chars"] == "14" and params["lower"].startswith("lowercase, ")
    assert tags["version.dagster"].startswith("1.13")
    client = MlflowClient(uri)
    profiles = sorted(file.path for file in client.list_artifacts(run.info.run_id, "profiles"))
    assert profiles == [f"profiles/{step}.json" for step in sorted(STEPS)]
    assert "report.html" in [file.path for file in client.list_artifacts(run.info.run_id)]


STEPS = ("source", "lower", "sized", "long_enough", "unique")


def test_a_run_is_a_run_of_mlflow_on_a_server(project: Path, server: str, tmp_path: Path) -> None:
    assert run_with(with_plugin(project), server).code == 5
    (run,) = runs(server)
    check_run(server, run)
    got = MlflowClient(server).download_artifacts(run.info.run_id, "profiles/sized.json", str(tmp_path))
    assert json.loads(Path(got).read_text())["rows"] == 59


def test_a_run_is_a_run_of_mlflow_on_the_disk(project: Path, file_store: str) -> None:
    assert run_with(with_plugin(project, "{experiment: mine, run_name: four}"), file_store).code == 5
    (run,) = runs(file_store, "mine")
    check_run(file_store, run)


def test_a_run_of_a_pipeline_without_profiles_is_kept_to_its_end(project: Path, file_store: str) -> None:
    file = with_plugin(project) / "four.yaml"
    file.write_text(file.read_text() + "profile: false\n")
    done = run_with(project, file_store)
    assert done.code == 5 and "plugin" not in done.err
    (run,) = runs(file_store)
    assert run.info.status == "FINISHED"
    artifacts = [file.path for file in MlflowClient(file_store).list_artifacts(run.info.run_id)]
    assert artifacts == ["report.html"]


def test_a_failed_run_is_failed_there(project: Path, file_store: str) -> None:
    file = with_plugin(project) / "four.yaml"
    check = "checks: [{max_failed_share: 0, blocking: true}]"
    file.write_text(file.read_text().replace("chars: int64}}", f"chars: int64}}}}, {check}"))
    assert run_with(project, file_store).code == 1
    (run,) = runs(file_store)
    assert (run.info.status, run.data.tags["dataflow.outcome"]) == ("FAILED", "failed")
    assert run.data.tags["dataflow.error"].startswith("CheckFailed: ")


def test_without_an_address_it_is_off_and_says_so(project: Path) -> None:
    done = finish(start(with_plugin(project), "run", "four.yaml"))
    assert done.code == 5
    assert "plugin 'mlflow' cannot be made and is off: RunError: MLFLOW_TRACKING_URI is not set" in done.err


def test_a_server_that_is_down_stops_nothing(project: Path) -> None:
    values = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "2"}
    values["MLFLOW_TRACKING_URI"] = f"http://ada:s3cret@127.0.0.1:{free_port()}"
    done = finish(start(with_plugin(project), "run", "four.yaml", env=environment(values)))
    assert done.code == 5
    assert "plugin 'mlflow' failed in on_pipeline_start and is off" in done.err
    assert "s3cret" not in done.err


def test_the_environment_switches_it_on_for_a_run_of_dagster(
    project: Path, file_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finish(start(project, "init")).code == 0
    values = {
        "MLFLOW_TRACKING_URI": file_store,
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "DATAFLOW_PLUGINS": "mlflow",
    }
    done = materialize(project, project, "four/source", **values)
    assert done.returncode == 0, done.stderr[-2000:]
    (run,) = runs(file_store)
    assert (run.data.metrics["source/rows_in"], run.data.metrics["source/rejected"]) == (61, 1)
    assert run.info.status == "FINISHED"
