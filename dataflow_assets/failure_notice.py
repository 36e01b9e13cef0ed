"""Tells a webhook or a command of runs that failed; what goes wrong in telling harms nothing."""

import os
import re
import shlex
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http.client import HTTPException

import dagster as dg
import orjson

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.names import identifier
from dataflow_assets.pipeline.notice import FailureNotice

WEBHOOK_VARIABLE = "DATAFLOW_ON_FAILURE_WEBHOOK"
COMMAND_VARIABLE = "DATAFLOW_ON_FAILURE_COMMAND"
_WEBHOOK_TIMEOUT_S = 10
_COMMAND_TIMEOUT_S = 30


@dataclass(frozen=True)
class FailedRun:
    """What is told of a run: its pipeline, where there is one, its id, job and error, and how to go on."""

    pipeline: str | None
    run_id: str
    job: str
    status: str
    error: str
    tags: dict[str, str]

    @property
    def text(self) -> str:
        """The same in one line; chat services show the field of this name."""
        return f"{self.pipeline or self.job}: run {self.run_id} failed: {self.error}"

    def as_json(self) -> bytes:
        """The document that is sent."""
        return orjson.dumps({**asdict(self), "text": self.text})


def notice_of_environment() -> FailureNotice | None:
    """Who is told of runs of pipelines that name nobody. Raises ConfigError for a wrong address."""
    webhook, command = os.environ.get(WEBHOOK_VARIABLE), os.environ.get(COMMAND_VARIABLE)
    if not webhook and not command:
        return None
    try:
        return FailureNotice(webhook=webhook or None, command=shlex.split(command) if command else None)
    except ValueError as error:
        raise ConfigError(f"{WEBHOOK_VARIABLE} or {COMMAND_VARIABLE} is wrong: {error}") from error


def run_failure_sensor(pipelines: Sequence[Pipeline]) -> dg.SensorDefinition:
    """Tells of each run of the deployment that failed; on where somebody is to be told, else off."""
    default = notice_of_environment()
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    anybody = default is not None or any(pipeline.on_failure for pipeline in pipelines)

    @dg.run_failure_sensor(
        name="dataflow_run_failed",
        description=f"Tells `on_failure` of the pipeline, else {WEBHOOK_VARIABLE} or {COMMAND_VARIABLE}, of "
        "each run that failed.",
        monitor_all_code_locations=True,
        default_status=dg.DefaultSensorStatus.RUNNING if anybody else dg.DefaultSensorStatus.STOPPED,
    )
    def run_failed(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        pipeline = by_name.get(pipeline_of(context.dagster_run, by_name) or "")
        notice = pipeline.on_failure if pipeline is not None and pipeline.on_failure else default
        if notice is None:
            return dg.SkipReason("nobody is to be told")
        problems = told(notice, _failed_run(context, pipeline))
        for problem in problems:
            context.log.warning(problem)
        return dg.SkipReason("; ".join(problems)) if problems else None

    return run_failed


def pipeline_of(run: dg.DagsterRun, names: Mapping[str, object]) -> str | None:
    """The pipeline of a run: by its tag, its assets, or its job."""
    if "dataflow/pipeline" in run.tags:
        return run.tags["dataflow/pipeline"]
    for key in run.asset_selection or ():
        if key.path[0] in names:
            return key.path[0]
    jobs = {f"{identifier(name)}_": name for name in names}
    fitting = [prefix for prefix in jobs if run.job_name.startswith(prefix)]
    return jobs[max(fitting, key=len)] if fitting else None


def told(notice: FailureNotice, run: FailedRun) -> list[str]:
    """Tells whom it says; one line for each that could not be told."""
    problems = []
    if notice.webhook:
        problems += _post(notice.webhook, run.as_json())
    if notice.command:
        problems += _run(notice.command, run.as_json())
    return problems


def _failed_run(context: dg.RunFailureSensorContext, pipeline: Pipeline | None) -> FailedRun:
    run, event = context.dagster_run, context.failure_event
    messages = [_first_cause(step) for step in context.get_step_failure_events()]
    error = "\n".join(filter(None, dict.fromkeys(messages))) or (event.message or "").strip()
    tags = {name: value for name, value in run.tags.items() if not name.startswith(".dagster")}
    name = None if pipeline is None else pipeline.name
    hidden = error if pipeline is None else pipeline.redacted(error)
    # Of texts with half a character, which no JSON takes, the half is told as its escape.
    sendable = hidden.encode("utf-8", "backslashreplace").decode()
    return FailedRun(name, run.run_id, run.job_name, run.status.value, sendable, tags)


def _first_cause(step: dg.DagsterEvent) -> str:
    """The message of the error that began it all: Dagster wraps those of its steps."""
    error = step.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return "" if error is None else error.message.strip()


def _post(url: str, body: bytes) -> list[str]:
    try:
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_WEBHOOK_TIMEOUT_S):
            return []
    except OSError as error:
        return [f"the webhook {_host_of(url)} could not be told: {error}"]
    except (ValueError, HTTPException) as error:  # their words quote parts of the address
        return [f"the webhook {_host_of(url)} could not be told: {type(error).__name__}"]


def _host_of(url: str) -> str:
    """The host of an address, and its port: paths, queries and passwords of webhooks are secrets."""
    return re.split("[/?#]", url.partition("://")[2])[0].rpartition("@")[2]


def _run(command: Sequence[str], body: bytes) -> list[str]:
    try:
        done = subprocess.run(command, input=body, capture_output=True, timeout=_COMMAND_TIMEOUT_S)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return [f"the command {command[0]!r} could not be run: {error}"]
    if done.returncode:
        end = done.stderr.decode("utf-8", "replace").strip()[-300:]
        return [f"the command {command[0]!r} ended with {done.returncode}: {end}"]
    return []
