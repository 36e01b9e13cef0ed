"""The plugin that keeps each run as a run of MLflow: parameters, numbers, versions, profiles, the report."""

import os
import platform
import time
from collections.abc import Iterator, Mapping

import orjson

from dataflow_assets.errors import RunError
from dataflow_assets.optional_packages import require, version_of
from dataflow_assets.plugins.events import (
    BatchCommitted,
    DeclaredStep,
    PipelineEnded,
    PipelineFailed,
    PipelineStarted,
    StepEnded,
    StepStarted,
)

URI_VARIABLE = "MLFLOW_TRACKING_URI"
_SEND_EVERY_S = 5.0
_MAX_VALUE_CHARS = 500
_PARAMS_A_CALL = 100
# A server that does not answer would hold up the run for minutes with MLflow's own values.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
_VERSIONS = ("dataflow_assets", "dagster", "pyarrow", "mlflow-skinny", "mlflow")


class MLflowPlugin:
    """Needs MLFLOW_TRACKING_URI; without it the plugin is off, and says so.

    `experiment` is made where there is none, by default `dataflow`; `run_name` is the pipeline's name by
    default. Metrics are `<step>/<number>`, over the number of the step's batches, sent at most every
    five seconds and at the end of the step. Parameters are `<step>` for the operator and its version, and
    `<step>.<parameter>`, without secrets, cut at 500 characters.
    """

    def __init__(self, experiment: str = "dataflow", run_name: str | None = None) -> None:
        """Raises ConfigError where MLflow is not installed, RunError where nobody said where it is."""
        require({"mlflow": "mlflow"}, "plugin 'mlflow'")
        if not os.environ.get(URI_VARIABLE):
            raise RunError(f"{URI_VARIABLE} is not set; give it the address of the tracking server")
        self._experiment, self._run_name = experiment, run_name
        self._numbers: dict[str, float] = {}
        self._batches = 0
        self._sent_at = 0.0
        self._was_stopped = False

    def on_pipeline_start(self, started: PipelineStarted) -> None:
        """Makes the run, with the parameters of all steps and the versions."""
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._work = started.work
        self._client = MlflowClient(os.environ[URI_VARIABLE])
        found = self._client.get_experiment_by_name(self._experiment)
        experiment = found.experiment_id if found else self._client.create_experiment(self._experiment)
        tags = {
            "dataflow.pipeline": started.pipeline,
            "dataflow.run_id": started.run_id,
            "dataflow.folder": started.folder,
            **dict(_versions()),
        }
        run = self._client.create_run(experiment, tags=tags, run_name=self._run_name or started.pipeline)
        self._run: str = run.info.run_id
        params = [Param(name, value) for step in started.steps for name, value in _params_of(step)]
        for place in range(0, len(params), _PARAMS_A_CALL):
            self._client.log_batch(self._run, params=params[place : place + _PARAMS_A_CALL])

    def on_step_start(self, started: StepStarted) -> None:
        """Counts from 0."""
        self._numbers, self._batches = {}, 0

    def on_batch(self, batch: BatchCommitted) -> None:
        """Counts a batch, and sends the numbers now and then."""
        self._batches += 1
        if not batch.reused:
            for name, value in _numbers_of(batch, batch.seconds):
                self._numbers[name] = self._numbers.get(name, 0) + value
        if time.monotonic() - self._sent_at >= _SEND_EVERY_S:
            self._send(batch.step, self._numbers)

    def on_step_end(self, ended: StepEnded) -> None:
        """Sends the numbers of the whole step, and its profile."""
        self._was_stopped = ended.outcome != "done"
        numbers = dict(_numbers_of(ended, ended.work_s))
        self._send(ended.step, {**numbers, "wall_seconds": ended.seconds, "batches": ended.batches})
        if ended.outcome == "done" and ended.batches and self._work.has_profile(ended.step):
            self._send_profile(ended.step)

    def on_failure(self, failed: PipelineFailed) -> None:
        """The error as a tag."""
        told = f"{failed.error_class}: {failed.message}"
        self._client.set_tag(self._run, "dataflow.error", told[:_MAX_VALUE_CHARS])

    def on_pipeline_end(self, ended: PipelineEnded) -> None:
        """Sends the report, and ends the run: FINISHED, FAILED, or KILLED for a pause or a stop."""
        self._client.set_tag(self._run, "dataflow.outcome", ended.outcome)
        status = "FINISHED"
        if ended.outcome == "failed":
            status = "FAILED"
        elif ended.outcome == "paused" or (ended.outcome == "partial" and self._was_stopped):
            status = "KILLED"
        try:
            self._send_report()
        finally:
            self._client.set_terminated(self._run, status)

    def _send(self, step: str, numbers: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        at = int(time.time() * 1000)
        metrics = [Metric(f"{step}/{name}", value, at, self._batches) for name, value in numbers.items()]
        if metrics:
            self._client.log_batch(self._run, metrics=metrics)
        self._sent_at = time.monotonic()

    def _send_profile(self, step: str) -> None:
        from dataflow_assets.profiles import profile_of

        found = profile_of(self._work, step).as_json()
        text = orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()
        self._client.log_text(self._run, text, f"profiles/{step}.json")

    def _send_report(self) -> None:
        from dataflow_assets.report import render

        self._client.log_text(self._run, render(self._work), "report.html")


def _params_of(step: DeclaredStep) -> Iterator[tuple[str, str]]:
    yield step.name, f"{step.type}, version {step.version}"
    for name, value in step.params.items():
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield f"{step.name}.{name}", text[:_MAX_VALUE_CHARS]


def _versions() -> Iterator[tuple[str, str]]:
    yield "version.python", platform.python_version()
    for package in _VERSIONS:
        version = version_of(package)
        if version is not None:
            yield f"version.{package}", version


def _numbers_of(of: BatchCommitted | StepEnded, seconds: float) -> Iterator[tuple[str, float]]:
    yield "rows_in", of.rows_in
    yield "rows_out", of.rows_out
    yield "rejected", sum(of.rejected.values())
    yield "failed", sum(of.failed.values())
    yield "seconds", seconds
    for name, amount in of.usage.items():
        yield ("call_seconds" if name == "seconds" else name), amount
