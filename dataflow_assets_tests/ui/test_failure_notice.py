"""Who is told of a run that failed, what is said, and that telling harms nothing."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import dagster as dg
import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.failure_notice import (
    COMMAND_VARIABLE,
    WEBHOOK_VARIABLE,
    FailedRun,
    notice_of_environment,
    pipeline_of,
    run_failure_sensor,
    told,
)
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline.notice import FailureNotice
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject, write_pipeline, write_rows
from dataflow_assets_tests.http_servers import listening, url_of

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
RUN = FailedRun("shop", "1234", "shop_run", "FAILURE", "no space left", {"dataflow/pipeline": "shop"})


class Hook:
    """A web server that keeps what is posted to it."""

    def __init__(self, status: int = 200) -> None:
        self.bodies: list[dict] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.bodies.append({**json.loads(body), "type": self.headers["Content-Type"]})
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"{url_of(self.server)}/secret-path"


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    with listening(hook.server):
        yield hook


def test_the_webhook_gets_the_run_as_json(hook):
    assert told(FailureNotice(webhook=hook.url), RUN) == []
    [body] = hook.bodies
    assert body["type"] == "application/json"
    assert (body["pipeline"], body["run_id"], body["error"]) == ("shop", "1234", "no space left")
    assert body["text"] == "shop: run 1234 failed: no space left"


def test_the_command_gets_it_on_its_standard_input(tmp_path):
    file = tmp_path / "told.json"
    code = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read())"
    assert told(FailureNotice(command=[sys.executable, "-c", code]), RUN) == []
    assert json.loads(file.read_text())["run_id"] == "1234"


def test_a_webhook_that_refuses_is_said_without_its_secret_path():
    hook = Hook(status=500)
    with listening(hook.server):
        [problem] = told(FailureNotice(webhook=hook.url), RUN)
    assert "500" in problem and "secret-path" not in problem


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://[bad/x", "https://nowhere.invalid/x"])
def test_a_webhook_that_is_not_there_is_a_line(url):
    assert len(told(FailureNotice(webhook=url), RUN)) == 1


@pytest.mark.parametrize(
    "url", ["http://ada:secret@127.0.0.1/x", "http://127.0.0.1:9?token=secret", "http://127.0.0.1:9/a secret"]
)
def test_secrets_of_an_odd_address_are_not_said(url):
    [problem] = told(FailureNotice(webhook=url), RUN)
    assert problem.startswith("the webhook 127.0.0.1") and "secret" not in problem


def test_a_command_that_is_missing_or_fails_is_a_line():
    assert "could not be run" in told(FailureNotice(command=["/no/such/program"]), RUN)[0]
    failing = [sys.executable, "-c", "import sys; sys.exit('no mail')"]
    assert told(FailureNotice(command=failing), RUN)[0].endswith("ended with 1: no mail")


def test_both_are_told_where_one_fails(hook):
    assert len(told(FailureNotice(webhook=hook.url, command=["/no/such/program"]), RUN)) == 1
    assert len(hook.bodies) == 1


def test_the_environment_names_them_for_all_pipelines(monkeypatch):
    assert notice_of_environment() is None
    monkeypatch.setenv(WEBHOOK_VARIABLE, "https://example.org/hook")
    monkeypatch.setenv(COMMAND_VARIABLE, "notify-send 'a run failed'")
    notice = notice_of_environment()
    assert notice == FailureNotice(
        webhook="https://example.org/hook", command=["notify-send", "a run failed"]
    )


def test_an_address_that_is_none_is_told_with_its_variable(monkeypatch):
    monkeypatch.setenv(WEBHOOK_VARIABLE, "example.org/hook")
    with pytest.raises(ConfigError, match=WEBHOOK_VARIABLE):
        notice_of_environment()


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (dg.DagsterRun("__ASSET_JOB", asset_selection=frozenset([dg.AssetKey(["shop", "lower"])])), "shop"),
        (dg.DagsterRun("shop_two_export"), "shop-two"),
        (dg.DagsterRun("shop_export"), "shop"),
        (dg.DagsterRun("job", tags={"dataflow/pipeline": "other"}), "other"),
        (dg.DagsterRun("somebody_elses"), None),
    ],
)
def test_the_pipeline_of_a_run_is_known(run, name):
    assert pipeline_of(run, {"shop": None, "shop-two": None}) == name


def test_the_sensor_is_on_where_somebody_is_to_be_told(tmp_path):
    quiet = load_pipeline(write_pipeline(tmp_path / "quiet"))
    told_of = load_pipeline(write_pipeline(tmp_path / "told", head="on_failure: {command: [mail, ada]}\n"))
    assert run_failure_sensor([quiet]).default_status == dg.DefaultSensorStatus.STOPPED
    assert run_failure_sensor([quiet, told_of]).default_status == dg.DefaultSensorStatus.RUNNING


def ticked(project, sensor, cursor=None):
    repository = dg.Definitions(sensors=[sensor]).get_repository_def()
    with dg.build_sensor_context(project.instance, cursor=cursor, repository_def=repository) as context:
        return sensor.evaluate_tick(context)


def failed_run(tmp_path, url):
    """A project whose run from the UI fails, and its sensor, which has looked once before."""
    project = SmallProject(tmp_path)
    write_rows(tmp_path, "a", ["One"])
    file = tmp_path / "small.yaml"
    file.write_text(f"{file.read_text()}on_failure: {{webhook: {url!r}}}\n")
    sensor = run_failure_sensor([load_pipeline(file)])
    before = ticked(project, sensor).cursor
    (tmp_path / "data" / "a.jsonl").write_text("no json\n")
    with pytest.raises(Exception, match="jsonl"):
        project.run_in_ui("source", tags={"dataflow/pipeline": "small"})
    return project, sensor, before


def test_a_run_that_failed_is_told_with_the_first_cause(tmp_path, hook):
    project, sensor, before = failed_run(tmp_path, hook.url)
    ticked(project, sensor, before)
    [body] = hook.bodies
    assert body["pipeline"] == "small"
    assert "SourceError" in body["error"] and "a.jsonl" in body["error"]


def test_an_error_with_half_a_character_is_told(tmp_path, hook):
    @dg.asset
    def broken() -> None:
        raise ValueError("no such text: a\ud83d")

    project, sensor, _ = failed_run(tmp_path, hook.url)
    before = ticked(project, sensor).cursor
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    tags = {"dataflow/pipeline": "small"}
    dg.materialize([broken], instance=project.instance, tags=tags, run_config=quiet, raise_on_error=False)
    ticked(project, sensor, before)
    assert "no such text: a\\ud83d" in hook.bodies[-1]["error"]


def test_a_webhook_that_is_gone_does_not_break_the_sensor(tmp_path):
    project, sensor, before = failed_run(tmp_path, "http://127.0.0.1:9/x")
    tick = ticked(project, sensor, before)
    assert "could not be told" in tick.skip_message
    assert tick.cursor != before
