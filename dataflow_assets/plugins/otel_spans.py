"""The plugin that sends a run to OpenTelemetry: a span for the pipeline, its steps and their batches."""

import os
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.optional_packages import require
from dataflow_assets.plugins.events import (
    BatchCommitted,
    PipelineEnded,
    PipelineFailed,
    PipelinePaused,
    PipelineStarted,
    StepEnded,
    StepStarted,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

_SERVICE = "dataflow-assets"
_EXPORTERS = "opentelemetry_traces_exporter"
_NS = 1_000_000_000
Attributes = dict[str, str | int | float]


class OTelPlugin:
    """On where the standard variables name an exporter or an endpoint; everything is set by them.

    It has a tracer of its own and leaves the process's global one alone. A batch's span is as long as
    its making, and ends with its commit; batches that were found committed have none. Spans are sent
    by a thread of OpenTelemetry, so a collector that is down stops nothing.
    """

    def __init__(self) -> None:
        """Raises RunError where the package or the exporter is not installed."""
        try:
            require({"opentelemetry.sdk": "otel"}, "OpenTelemetry, asked for by OTEL_ variables,")
        except (ConfigError, ModuleNotFoundError) as error:
            raise RunError(
                "OpenTelemetry is asked for by OTEL_ variables, and is not installed; run "
                "`pip install 'dataflow_assets[otel]'`"
            ) from error
        self._exporter = _exporter()
        self._steps: dict[str, Span] = {}

    def on_pipeline_start(self, started: PipelineStarted) -> None:
        """Opens the span of the run."""
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        self._provider = TracerProvider(resource=Resource.create({} if named else {SERVICE_NAME: _SERVICE}))
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer: Tracer = self._provider.get_tracer("dataflow_assets")
        attributes: Attributes = {"dataflow.run_id": started.run_id, "dataflow.steps": len(started.steps)}
        self._pipeline = self._span(f"pipeline {started.pipeline}", started.pipeline, None, attributes)

    def on_step_start(self, started: StepStarted) -> None:
        """Opens the span of a step."""
        attributes: Attributes = {"dataflow.step": started.step}
        if started.batches is not None:
            attributes["dataflow.batches"] = started.batches
        span = self._span(f"step {started.step}", started.pipeline, self._pipeline, attributes)
        self._steps[started.step] = span

    def on_batch(self, batch: BatchCommitted) -> None:
        """A span from the beginning of the batch to now."""
        if batch.reused:
            return
        now = time.time_ns()
        attributes: Attributes = {
            "dataflow.step": batch.step,
            "dataflow.batch": batch.batch,
            **_numbers(batch),
        }
        begun = now - int(batch.seconds * _NS)
        step = self._steps.get(batch.step, self._pipeline)
        self._span(f"batch {batch.batch}", batch.pipeline, step, attributes, begun).end(now)

    def on_step_end(self, ended: StepEnded) -> None:
        """Closes the span of the step."""
        from opentelemetry.trace import StatusCode

        span = self._steps.pop(ended.step, None)
        if span is None:
            return
        span.set_attributes({**_numbers(ended), "dataflow.outcome": ended.outcome})
        span.set_attributes({"dataflow.batches.made": ended.batches, "dataflow.batches.reused": ended.reused})
        if ended.outcome == "failed":
            span.set_status(StatusCode.ERROR)
        span.end()

    def on_pause(self, paused: PipelinePaused) -> None:
        """An event on the span of the run."""
        told: Attributes = {"dataflow.cause": paused.cause, "dataflow.message": paused.message}
        self._pipeline.add_event("paused", told)

    def on_failure(self, failed: PipelineFailed) -> None:
        """The span of the run has an error."""
        from opentelemetry.trace import StatusCode

        self._pipeline.set_status(StatusCode.ERROR, failed.message)
        told: Attributes = {"exception.type": failed.error_class, "exception.message": failed.message}
        self._pipeline.add_event("exception", told)

    def on_pipeline_end(self, ended: PipelineEnded) -> None:
        """Closes the span of the run, and sends what is left."""
        self._pipeline.set_attribute("dataflow.outcome", ended.outcome)
        self._pipeline.end()
        self._provider.shutdown()

    def _span(
        self,
        name: str,
        pipeline: str,
        parent: "Span | None",
        attributes: Attributes,
        begun: int | None = None,
    ) -> "Span":
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        within = Context() if parent is None else set_span_in_context(parent, Context())
        told: Attributes = {"dataflow.pipeline": pipeline, **attributes}
        return self._tracer.start_span(name, within, attributes=told, start_time=begun)


def _numbers(of: BatchCommitted | StepEnded) -> Attributes:
    numbers: Attributes = {
        "dataflow.rows.in": of.rows_in,
        "dataflow.rows.kept": of.rows_out,
        "dataflow.rows.rejected": sum(of.rejected.values()),
        "dataflow.rows.failed": sum(of.failed.values()),
    }
    return {**numbers, **{f"dataflow.usage.{name}": amount for name, amount in of.usage.items()}}


def _exporter() -> "SpanExporter":
    """What the variables name: OTLP over HTTP unless they say otherwise. Raises RunError."""
    asked = (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(",")[0].strip()
    name = _otlp_name() if asked == "otlp" else asked
    for point in entry_points(group=_EXPORTERS, name=name):
        return point.load()()
    raise RunError(
        f"the exporter {asked!r} of OpenTelemetry is not installed as {name!r}; "
        "`pip install 'dataflow_assets[otel]'` brings OTLP over HTTP"
    )


def _otlp_name() -> str:
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next(filter(None, map(os.environ.get, names)), "http/protobuf")
    return "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
