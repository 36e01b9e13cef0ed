import socket
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dataflow_assets.errors import ConfigError
from dataflow_assets.metrics.plugin import address_of
from dataflow_assets.metrics.run_metrics import RunMetrics
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.plugins.events import BatchCommitted
from dataflow_assets.plugins.known import wanted_plugins
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control.slow_project import waiting_run, write_slow
from dataflow_assets_tests.crash.command import command, environment, finish, start
from dataflow_assets_tests.crash.gate import wait_until
from dataflow_assets_tests.dagster_side.webserver import free_port
from dataflow_assets_tests.plugins.test_hooks import materialize

USAGE = {"calls": 2, "cached": 1, "tokens_in": 30, "tokens_out": 5, "cost": 0.25, "seconds": 1.5}


def samples(text: str) -> dict[tuple[str, ...], float]:
    """The values by name and labels but the pipeline, as Prometheus itself parses them."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = [sample.labels[name] for name in sorted(sample.labels) if name != "pipeline"]
            found[(sample.name, *labels)] = sample.value
    return found


def scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def test_the_file_has_what_the_run_did(project: Path, command_here: Command) -> None:
    command_here(project, "run", "four.yaml", "--metrics-file", "out/four.prom")
    found = samples((project / "out/four.prom").read_text())
    assert found["dataflow_rows_in_total", "sized"] == 60
    assert found["dataflow_rows_total", "kept", "sized"] == 59
    assert found["dataflow_rows_total", "failed", "sized"] == 1
    assert found["dataflow_rows_total", "rejected", "unique"] == 11
    assert found["dataflow_failed_rows_total", "ValueError", "sized"] == 1
    assert found["dataflow_batches_total", "made", "unique"] == found["dataflow_step_batches", "unique"] == 6
    assert found["dataflow_batch_seconds_total", "sized"] > 0
    assert found["dataflow_run_state", "done"] == 1 and found["dataflow_run_state", "running"] == 0
    assert found["dataflow_run_end_timestamp_seconds",] >= found["dataflow_run_start_timestamp_seconds",] > 0
    assert [path.name for path in (project / "out").iterdir()] == ["four.prom"]


def test_reused_batches_count_as_such_and_a_folder_gets_a_file_for_each_pipeline(
    project: Path, command_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_here(project, "run", "four.yaml")
    (project / "data/four/four_step1/_commits/in_b00003.json").unlink()
    monkeypatch.setenv("DATAFLOW_METRICS_FILE", "collected/")
    command_here(project, "run", "four.yaml")
    found = samples((project / "collected/dataflow_four.prom").read_text())
    assert found["dataflow_batches_total", "made", "lower"] == 1
    assert found["dataflow_batches_total", "reused", "lower"] == 5
    assert found["dataflow_rows_in_total", "lower"] == 10


def test_the_environment_may_name_a_place_in_the_home(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DATAFLOW_METRICS_FILE", "~/collected/")
    wanted = wanted_plugins(load_pipeline(project / "four.yaml"))
    assert wanted["metrics"] == {"file": f"{tmp_path}/collected/"}


def test_the_endpoint_answers_while_the_run_goes_on_and_the_file_follows_it(tmp_path: Path) -> None:
    folder, port = write_slow(tmp_path / "project").parent, free_port()
    values = {"DATAFLOW_METRICS_PORT": str(port), "DATAFLOW_METRICS_FILE": str(folder / "slow.prom")}
    with waiting_run(folder, **values) as process:
        wait_until(lambda: samples(scraped(port)).get(("dataflow_rows_in_total", "slow")) == 35, process)
        found = samples(scraped(port))
        assert found["dataflow_run_state", "running"] == 1
        assert found["dataflow_step_batches", "slow"] == 40
        wait_until(lambda: ("dataflow_rows_in_total", "slow") in samples((folder / "slow.prom").read_text()))
    assert finish(process).code == 0
    with pytest.raises(OSError):
        scraped(port)
    assert samples((folder / "slow.prom").read_text())["dataflow_rows_in_total", "slow"] == 200


def test_a_port_that_is_taken_stops_nothing(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        arguments = ("--metrics-port", port, "--metrics-file", "four.prom")
        done = finish(start(project, "run", "four.yaml", *arguments))
    assert done.code == 5
    assert f"metrics cannot be served at 127.0.0.1:{port}" in done.err
    assert ("dataflow_rows_in_total", "unique") in samples((project / "four.prom").read_text())


def test_a_file_that_cannot_be_written_stops_nothing(project: Path) -> None:
    (project / "there").write_text("no folder")
    done = command(project, "run", "four.yaml", "--metrics-file", "there/four.prom")
    assert done.code == 5
    assert "plugin 'metrics' failed in on_pipeline_start and is off for the rest of this run" in done.err


def test_a_run_of_dagster_has_the_pipelines_own_settings(project: Path) -> None:
    file = project / "four.yaml"
    file.write_text(file.read_text() + "plugins:\n  metrics: {file: own.prom}\n")
    assert command(project, "init").code == 0
    done = materialize(project, project, "four/source")
    assert done.returncode == 0, done.stderr[-2000:]
    assert samples((project / "own.prom").read_text())["dataflow_rows_in_total", "source"] == 61


def batch(**values: object) -> BatchCommitted:
    known = dict(pipeline="p", run_id="r", step="s", batch="b", reused=False, rows_in=1, rows_out=1)
    more = dict(rejected={}, failed={}, seconds=0.5, usage={})
    return BatchCommitted(**{**known, **more, **values})  # pyright: ignore[reportArgumentType]


def exposed(metrics: RunMetrics) -> dict[tuple[str, ...], float]:
    from prometheus_client import generate_latest

    return samples(generate_latest(metrics.registry).decode())


def test_calls_tokens_and_cost_are_counted() -> None:
    metrics = RunMetrics()
    metrics.add(batch(usage=USAGE))
    metrics.add(batch(usage=USAGE))
    found = exposed(metrics)
    assert (found["dataflow_calls_total", "sent", "s"], found["dataflow_calls_total", "ledger", "s"]) == (
        4,
        2,
    )
    assert (found["dataflow_tokens_total", "in", "s"], found["dataflow_tokens_total", "out", "s"]) == (60, 10)
    assert (found["dataflow_cost_total", "s"], found["dataflow_call_seconds_total", "s"]) == (0.5, 3.0)


def test_error_classes_are_data_and_not_without_end() -> None:
    metrics = RunMetrics()
    metrics.add(batch(failed={'a"\n\x1b\ud800': 1}))
    for number in range(100):
        metrics.add(batch(failed={f"E{number}": 1}))
    classes = {
        key[1]: value for key, value in exposed(metrics).items() if key[0].startswith("dataflow_failed")
    }
    assert classes['a"\\n\\x1b\\ud800'] == 1
    assert (len(classes), classes["other"]) == (51, 51)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (9464, ("127.0.0.1", 9464)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:80", ("::1", 80)),
        (":80", ("127.0.0.1", 80)),
    ],
)
def test_a_port_may_have_a_host(given: int | str, address: tuple[str, int]) -> None:
    assert address_of(given) == address


@pytest.mark.parametrize("given", ["", "http", "80a", "70000", "-1"])
def test_what_is_no_port_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="is no port"):
        address_of(given)


def test_without_the_package_the_run_is_refused_with_the_command_that_helps(project: Path) -> None:
    hidden = project / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['prometheus_client'] = None\n")
    values = environment()
    values = environment({"PYTHONPATH": f"{hidden}:{values['PYTHONPATH']}"})
    done = finish(start(project, "run", "four.yaml", "--metrics-file", "x.prom", env=values))
    assert done.code == 2 and done.is_clean
    assert "run `pip install 'dataflow_assets[metrics]'`" in done.err
