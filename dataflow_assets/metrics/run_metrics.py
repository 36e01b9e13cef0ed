"""The numbers of one run as Prometheus metrics, in a registry of their own."""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dataflow_assets.io.preview import shown_value
from dataflow_assets.plugins.events import (
    BatchCommitted,
    PipelineEnded,
    PipelineStarted,
    StepEnded,
    StepStarted,
)

_MOST_CLASSES = 50
_MAX_CLASS_CHARS = 100
_OTHER = "other"
_STATES = ("running", "done", "partial", "paused", "failed")


class _Family(NamedTuple):
    kind: Literal["counter", "gauge"]
    says: str
    labels: tuple[str, ...] = ("pipeline", "step")


_BY_OUTCOME = ("pipeline", "step", "outcome")
_FAMILIES: Mapping[str, _Family] = {
    "rows_in": _Family("counter", "Rows that came into a step."),
    "rows": _Family("counter", "Rows by what became of them: kept, rejected, failed.", _BY_OUTCOME),
    "failed_rows": _Family("counter", "Failed rows by error class.", ("pipeline", "step", "error_class")),
    "batches": _Family("counter", "Batches: made in this run, or reused.", _BY_OUTCOME),
    "batch_seconds": _Family("counter", "Seconds of making batches, however many at a time."),
    "calls": _Family(
        "counter", "Answers of models: asked for, or from the ledger.", ("pipeline", "step", "source")
    ),
    "tokens": _Family("counter", "Tokens of calls to models.", ("pipeline", "step", "direction")),
    "cost": _Family("counter", "Cost of calls to models, in the currency of the prices."),
    "call_seconds": _Family("counter", "Seconds of calls in flight."),
    "step_batches": _Family("gauge", "Batches that the step has to have."),
    "step_seconds": _Family("gauge", "Seconds from the step's start to its end."),
    "last_batch_timestamp_seconds": _Family("gauge", "When the last batch was made (Unix time)."),
    "run_state": _Family("gauge", "1 for the state of the run.", ("pipeline", "state")),
    "run_start_timestamp_seconds": _Family("gauge", "When the run began (Unix time).", ("pipeline",)),
    "run_end_timestamp_seconds": _Family("gauge", "When it ended (Unix time), 0 before.", ("pipeline",)),
}


class RunMetrics(Collector):
    """Counts from 0 at the start of the run, so `rate` and `increase` work over runs.

    Rows, failures, calls, tokens, cost and seconds are those of batches that this run made; batches
    that were found committed are counted as such. A step's error classes beyond the first 50 are
    counted together as `other`. Thread-safe.
    """

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in _FAMILIES}
        self._lock = threading.Lock()
        self._classes: dict[str, set[str]] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def start(self, run: PipelineStarted) -> None:
        """The run begins."""
        with self._lock:
            self._set("run_start_timestamp_seconds", time.time(), run.pipeline)
            self._set("run_end_timestamp_seconds", 0, run.pipeline)
            self._set_state(run.pipeline, "running")

    def start_step(self, step: StepStarted) -> None:
        """A step begins; its counters are there from now on, with 0."""
        place = (step.pipeline, step.step)
        with self._lock:
            self._add_rows(place, 0, {"kept": 0, "rejected": 0, "failed": 0})
            for outcome in ("made", "reused"):
                self._add("batches", 0, *place, outcome)
            self._add("batch_seconds", 0, *place)
            if step.batches is not None:
                self._set("step_batches", step.batches, *place)

    def add(self, batch: BatchCommitted) -> None:
        """Counts a batch."""
        place = (batch.pipeline, batch.step)
        rejected, failed = sum(batch.rejected.values()), sum(batch.failed.values())
        with self._lock:
            self._add("batches", 1, *place, "reused" if batch.reused else "made")
            if batch.reused:
                return
            self._set("last_batch_timestamp_seconds", time.time(), *place)
            self._add_rows(
                place, batch.rows_in, {"kept": batch.rows_out, "rejected": rejected, "failed": failed}
            )
            self._add("batch_seconds", batch.seconds, *place)
            for name, count in batch.failed.items():
                self._add("failed_rows", count, *place, self._class_of(batch.step, name))
            if batch.usage:
                self._add_usage(place, batch.usage)

    def end_step(self, step: StepEnded) -> None:
        """A step ends."""
        with self._lock:
            self._set("step_seconds", step.seconds, step.pipeline, step.step)

    def end(self, run: PipelineEnded) -> None:
        """The run ends."""
        with self._lock:
            self._set("run_end_timestamp_seconds", time.time(), run.pipeline)
            self._set_state(run.pipeline, run.outcome)

    def collect(self) -> Iterator[Metric]:
        """The metrics that have a value, for the client library."""
        with self._lock:
            found = {name: dict(values) for name, values in self._values.items() if values}
        for name, values in found.items():
            kind, says, labels = _FAMILIES[name]
            made = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            family = made(f"dataflow_{name}", says, labels=labels)
            for place, value in values.items():
                family.add_metric(place, value)
            yield family

    def _add_rows(self, place: tuple[str, str], rows_in: int, outcomes: Mapping[str, int]) -> None:
        self._add("rows_in", rows_in, *place)
        for outcome, count in outcomes.items():
            self._add("rows", count, *place, outcome)

    def _add_usage(self, place: tuple[str, str], usage: Mapping[str, float]) -> None:
        self._add("calls", usage.get("calls", 0), *place, "sent")
        self._add("calls", usage.get("cached", 0), *place, "ledger")
        self._add("tokens", usage.get("tokens_in", 0), *place, "in")
        self._add("tokens", usage.get("tokens_out", 0), *place, "out")
        self._add("cost", usage.get("cost", 0), *place)
        self._add("call_seconds", usage.get("seconds", 0), *place)

    def _class_of(self, step: str, name: str) -> str:
        known = self._classes.setdefault(step, set())
        shown = shown_value(name, _MAX_CLASS_CHARS)
        if shown not in known and len(known) >= _MOST_CLASSES:
            return _OTHER
        known.add(shown)
        return shown

    def _set_state(self, pipeline: str, state: str) -> None:
        for each in _STATES:
            self._set("run_state", each == state, pipeline, each)

    def _add(self, name: str, value: float, *labels: str) -> None:
        values = self._values[name]
        values[labels] = values.get(labels, 0) + value

    def _set(self, name: str, value: float, *labels: str) -> None:
        self._values[name][labels] = value
