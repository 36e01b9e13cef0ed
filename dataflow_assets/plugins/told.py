"""The plugins of one run, told in turn of what it does; one that raises is off for the rest of the run."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from dataflow_assets.control import run_is_over
from dataflow_assets.errors import Paused, Stopped
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.preview import visible
from dataflow_assets.io.step_folder import counted
from dataflow_assets.operators.operator import REJECT_REASON, Outcome
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.problems import without_logins
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.plugins.events import (
    BatchCommitted,
    DeclaredStep,
    Event,
    Hook,
    PipelineEnded,
    PipelineFailed,
    PipelinePaused,
    PipelineStarted,
    RunOutcome,
    StepEnded,
    StepOutcome,
    StepStarted,
)
from dataflow_assets.plugins.known import make_plugins
from dataflow_assets.progress import say
from dataflow_assets.task_state import State

Say = Callable[[str], None]
_RUN_OUTCOMES: Mapping[State, RunOutcome] = {"done": "done", "paused": "paused", "failed": "failed"}


@dataclass
class _Step:
    """The step that is being made, and the sums over what was made of it."""

    name: str
    began: float
    batches: int = 0
    reused: int = 0
    rows_in: int = 0
    rows_out: int = 0
    work_s: float = 0.0
    rejected: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)

    def add(self, batch: BatchCommitted) -> None:
        """Counts a batch."""
        if batch.reused:
            self.reused += 1
            return
        self.batches += 1
        self.rows_in += batch.rows_in
        self.rows_out += batch.rows_out
        self.work_s += batch.seconds
        for name, count in batch.rejected.items():
            self.rejected[name] = self.rejected.get(name, 0) + count
        for name, count in batch.failed.items():
            self.failed[name] = self.failed.get(name, 0) + count
        for name, amount in batch.usage.items():
            self.usage[name] = self.usage.get(name, 0) + amount


class ToldPlugins:
    """What a run tells its plugins, from its start to its end; without plugins nothing happens.

    Hooks are called in the thread that commits, one after another. `say` gets one line for a plugin
    that raised, with its name and without secrets. With `run_id`, that of Dagster, the run has further
    tasks after the one that ends: whoever opened it calls `end`.
    """

    def __init__(self, work: PipelineWork | None, say: Say = say, run_id: str | None = None) -> None:
        """Makes the plugins. Raises ConfigError."""
        self._work, self._say = work, say
        self._has_more_tasks = run_id is not None
        self._run_id = run_id or str(uuid4())
        self._plugins = {} if work is None else make_plugins(work.pipeline, self._say_safely)
        self._step: _Step | None = None
        self._began: float | None = None
        self._outcomes: set[RunOutcome] = set()
        self._last: RunOutcome = "partial"

    @property
    def _pipeline(self) -> str:
        assert self._work is not None
        return self._work.pipeline.name

    def begin(self) -> None:
        """The run begins; told once."""
        if not self._plugins or self._began is not None:
            return
        assert self._work is not None
        self._began = time.monotonic()
        steps = tuple(declared_steps(self._work.pipeline))
        folder = str(self._work.layout.folder)
        self._tell(
            "on_pipeline_start", PipelineStarted(self._pipeline, self._run_id, folder, steps, self._work)
        )

    @contextlib.contextmanager
    def step(
        self, name: str, batches: int | None = None, dagster_run_id: str | None = None
    ) -> Iterator[None]:
        """A step begins, and ends; `batches` is how many it has, where that is known."""
        if not self._plugins:
            yield
            return
        self._step = _Step(name, time.monotonic())
        self._tell("on_step_start", StepStarted(self._pipeline, self._run_id, name, batches, dagster_run_id))
        try:
            yield
        except BaseException as error:
            self._end_step(self._step, error)
            raise
        self._end_step(self._step, None)

    def committed(self, record: CommitRecord, reused: bool) -> None:
        """A batch of the step was committed, or found."""
        step = self._step
        if not self._plugins or step is None:
            return
        batch = BatchCommitted(
            self._pipeline,
            self._run_id,
            step.name,
            record.batch,
            reused,
            record.rows_in,
            record.rows_out,
            dict(record.rejected),  # a plugin that changes what it was told changes no number of the run
            dict(record.failed),
            record.seconds,
            dict(record.usage),
        )
        step.add(batch)
        self._tell("on_batch", batch)

    def retried(self, record: CommitRecord, rows: int, outcome: Outcome, usage: Mapping[str, float]) -> None:
        """Some rows of a batch were done again; it was committed with what became of them."""
        of_these = replace(
            record,
            rows_in=rows,
            rows_out=outcome.kept.num_rows,
            rejected=counted(outcome.rejected, REJECT_REASON),
            failed=counted(outcome.failed, "error_class"),
            usage=dict(usage),
        )
        self.committed(of_these, reused=False)

    def end_of_task(self, outcome: State, step: str | None, error: BaseException | None) -> None:
        """A task of the run ends, and the run where it has no further ones."""
        if error is not None and self._plugins:
            self._broke_off(error, step)
        self._last = _RUN_OUTCOMES.get(outcome, "partial")
        self._outcomes.add(self._last)
        if not self._has_more_tasks:
            self.end()

    def end(self, has_failed: bool = False) -> None:
        """The run ends, where it began. `has_failed`: whatever was told, Dagster saw a step fail."""
        if self._began is None:
            return
        if has_failed and not {"failed", "paused"} & self._outcomes:
            message = "a step failed outside of its batches; its error is in the run of Dagster"
            self._failed(None, "StepFailed", message)
        worst: list[RunOutcome] = [each for each in ("failed", "paused") if each in self._outcomes]
        outcome = worst[0] if worst else self._last
        seconds = time.monotonic() - self._began
        assert self._work is not None
        with run_is_over(self._work.layout.folder):
            self._tell("on_pipeline_end", PipelineEnded(self._pipeline, self._run_id, outcome, seconds))
        self._plugins.clear()

    def _end_step(self, step: _Step, error: BaseException | None) -> None:
        seconds = time.monotonic() - step.began
        ended = StepEnded(
            self._pipeline,
            self._run_id,
            step.name,
            _outcome_of(error),
            step.batches,
            step.reused,
            step.rows_in,
            step.rows_out,
            step.rejected,
            step.failed,
            seconds,
            step.work_s,
            step.usage,
        )
        self._step = None
        self._tell("on_step_end", ended)

    def _broke_off(self, error: BaseException, step: str | None) -> None:
        """The run cannot go on: for a pause, or for an error; a signal is neither."""
        message = self._redacted(str(error)) or type(error).__name__
        if isinstance(error, Paused):
            self._tell("on_pause", PipelinePaused(self._pipeline, self._run_id, step, error.cause, message))
        elif not isinstance(error, Stopped):
            self._failed(step, type(error).__name__, message)

    def _failed(self, step: str | None, error_class: str, message: str) -> None:
        self._outcomes.add("failed")
        self._tell("on_failure", PipelineFailed(self._pipeline, self._run_id, step, error_class, message))

    def _tell(self, hook: Hook, event: Event) -> None:
        for name, plugin in list(self._plugins.items()):
            try:
                method = getattr(plugin, hook, None)
                if method is not None:
                    method(event)
            except (Exception, SystemExit) as error:  # noqa: BLE001  another's code stops no run
                del self._plugins[name]
                self._say_safely(
                    f"plugin {name!r} failed in {hook} and is off for the rest of this run: "
                    f"{type(error).__name__}: {error}"
                )

    def _say_safely(self, text: str) -> None:
        self._say(visible(without_logins(self._redacted(text))))

    def _redacted(self, text: str) -> str:
        return text if self._work is None else self._work.pipeline.redacted(text)


def declared_steps(pipeline: Pipeline) -> list[DeclaredStep]:
    """The steps of a pipeline as plugins are told of them."""
    return [
        DeclaredStep(
            number,
            step.name,
            step.type,
            pipeline.operator(step).version,
            pipeline.redacted_values(pipeline.operator(step).fingerprint_of_params()),
        )
        for number, step in enumerate(pipeline.ordered_steps, 1)
    ]


def _outcome_of(error: BaseException | None) -> StepOutcome:
    if error is None:
        return "done"
    if isinstance(error, Paused):
        return "paused"
    return "stopped" if isinstance(error, Stopped) else "failed"
