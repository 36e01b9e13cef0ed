"""What a run does for the state of its pipeline: begins it, sees a pause, keeps how far it came, ends it."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from dagster import DagsterRunStatus
from sqlalchemy.exc import SQLAlchemyError

from dataflow_assets.control import Pause, StopFlag, held_signals, is_locked, pipeline_lock
from dataflow_assets.errors import ConfigError, Paused, PipelineBusy, SourceError, Stopped
from dataflow_assets.expectations.last_runs import keep_last_runs
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.planning import is_up_to_date
from dataflow_assets.plugins.told import ToldPlugins
from dataflow_assets.progress import say
from dataflow_assets.task_state import Batches, TaskState, TaskStore, now, resume_argument, this_user

_LOOK_EVERY_S = 0.5
_WRITE_EVERY_S = 1.0
_WAIT_FOR_A_PAUSE_S = 60.0
_running: dict[str, "RunningTask"] = {}
_running_guard = threading.Lock()


class RunningTask:
    """One run of a pipeline: how far it came, and the flag that stops it.

    Its thread looks for a pause twice a second, raises `stop` for it, says that a signal came, and
    writes at most once a second how far the run came. `told` are the plugins of the run,
    `launched_run` is the run that Dagster launched for it, None for the command. `died_here_twice`: the
    last two runs were killed after the same batch, as by a row that ends its process.
    """

    def __init__(
        self, store: TaskStore, work: PipelineWork | None, run_id: str | None, told: ToldPlugins
    ) -> None:
        self.stop = StopFlag()
        self.is_complete = False
        self.died_here_twice = False
        self.told = told
        self.store, self._work, self.launched_run = store, work, run_id
        self._state = TaskState(store.pipeline, "running", who=this_user(), when=now(), run_id=run_id)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pause", daemon=True)

    def begin_step(self, step: str, span: tuple[str, str] | None = None, run_id: str | None = None) -> None:
        """Notes that an asset begins, with the first and last batch that are wanted, and Dagster's run."""
        batches = None if span is None else Batches(*span, done=0)
        known = self._state.run_id
        self._state = replace(
            self._state, step=step, batch=None, batches=batches, run_id=run_id or self.launched_run
        )
        if self._state.run_id != known and not self.store.instance.is_ephemeral:
            with contextlib.suppress(SQLAlchemyError):  # a kill in the next second must leave the run's id
                self.store.write(self._state)

    def committed(self, batch: str) -> None:
        """Notes a batch of the asset that is committed, now or before."""
        span = self._state.batches
        counted = None if span is None else replace(span, done=span.done + 1)
        self._state = replace(self._state, batch=batch, batches=counted)

    def begin(self) -> None:
        """Writes that it runs. Raises Paused, and writes nothing, where the pipeline is paused."""
        self.store.raise_if_paused()
        self.store.take_flush()
        killed = self.store.left_running()
        if killed is not None:
            self._state = replace(self._state, killed_at=killed.place)
            self.died_here_twice = killed.killed_at == killed.place
        self.store.write(self._state)
        if not self.store.instance.is_ephemeral:  # nobody else sees it, and its database takes one thread
            self._thread.start()
        self.told.begin()

    def end(self, error: BaseException | None) -> None:
        """Writes how the run ended; a pause of a budget or a breaker stands for the next one too."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if isinstance(error, Paused) and error.cause != "user":
            self.store.ask_pause(self._own_pause(error))
        last = self._last_state(error)
        try:
            if last.state == "done" and self._work is not None:
                keep_last_runs(self._work)
            self.store.write(last)
        finally:
            self.told.end_of_task(last.state, last.step, error)

    def _watch(self) -> None:
        written, at = self._state, time.monotonic()
        is_said = False
        while not self._ended.wait(_LOOK_EVERY_S):
            if self.stop.signal is not None and not is_said:
                say(f"{self.stop.reason}: stopping after what is in hand; a second one ends it at once")
                is_said = True
            with contextlib.suppress(SQLAlchemyError):  # a database that is busy is asked again
                self.stop.paused = self.stop.paused or self.store.pause()
                if self.stop.held.batches and self.store.take_flush():
                    self.stop.write_now = True
                held = self.stop.held
                state = replace(self._state, held_batches=held.batches, held_bytes=held.bytes)
                if state != written and time.monotonic() - at >= _WRITE_EVERY_S:
                    self.store.write(state)
                    written, at = state, time.monotonic()

    def _own_pause(self, error: Paused) -> Pause:
        name = self.store.pipeline if self._work is None else resume_argument(self._work.pipeline)
        return Pause(name, error.cause, now(), self._told(error), error.cause)

    def _last_state(self, error: BaseException | None) -> TaskState:
        state = replace(self._state, when=now(), who=None)
        if error is None:
            return replace(state, state="done" if self.is_complete or self._was_the_rest() else "partial")
        if isinstance(error, Paused):
            pause = self.store.pause() or self._own_pause(error)
            return replace(
                state, state="paused", cause=pause.cause, who=pause.who, when=pause.when, why=pause.why
            )
        if isinstance(error, Stopped):
            return replace(state, state="partial", cause="signal", who=self._who_stopped(), why=str(error))
        return replace(state, state="failed", cause="error", why=self._told(error))

    def _was_the_rest(self) -> bool:
        """Whether a run of Dagster, which knows of no more than its assets, left nothing to do."""
        work = self._work
        if (
            self.launched_run is None
            or work is None
            or self._state.step != work.pipeline.ordered_steps[-1].name
        ):
            return False
        return is_up_to_date(work, work.known_manifest().batches)

    def _who_stopped(self) -> str:
        """`Dagster UI` where the run that Dagster launched was terminated there, else the signal."""
        if self.launched_run is not None:
            run = self.store.instance.get_run_by_id(self.launched_run)
            if run is not None and run.status == DagsterRunStatus.CANCELING:
                return "Dagster UI"
        return self.stop.reason if self.stop else "a signal"

    def _told(self, error: BaseException) -> str:
        """The error without secrets; without the pipeline nobody knows them, so its kind alone."""
        if self._work is None and not isinstance(error, Paused):
            return f"{type(error).__name__}; its message is in the run of Dagster"
        text = str(error) if self._work is None else self._work.pipeline.redacted(str(error))
        return text or type(error).__name__


@contextlib.contextmanager
def running_task(
    store: TaskStore,
    work: PipelineWork | None = None,
    run_id: str | None = None,
    told: Callable[[PipelineWork], ToldPlugins] = ToldPlugins,
) -> Iterator[RunningTask]:
    """The run of this pipeline, from its first state to its last; within it, the same run again.

    SIGINT and SIGTERM are held meanwhile, and raise its flag. `run_id` is that of the run which
    Dagster launched, None for the command. `told` gives its plugins. Whoever calls holds the
    pipeline's lock. Raises Paused while the pipeline is paused, and what ended the run; a pause of a
    budget or a breaker is raised with the words that say how to go on. Raises ConfigError, before it
    begins, for a plugin that there is not.
    """
    place = str(store.folder)
    with _running_guard:
        outer = _running.get(place)
        task = outer or _running.setdefault(place, _new_task(store, work, run_id, told))
    with held_signals(task.stop):
        if outer is not None:
            yield outer
            return
        try:
            task.begin()
            yield from _to_its_end(task)
        finally:
            with _running_guard:
                del _running[place]


def _new_task(
    store: TaskStore,
    work: PipelineWork | None,
    run_id: str | None,
    told: Callable[[PipelineWork], ToldPlugins],
) -> RunningTask:
    return RunningTask(store, work, run_id, ToldPlugins(None) if work is None else told(work))


def _to_its_end(task: RunningTask) -> Iterator[RunningTask]:
    try:
        yield task
    except BaseException as error:
        with contextlib.suppress(SQLAlchemyError):  # the error itself matters more
            task.end(error)
            if isinstance(error, Paused):
                task.store.raise_if_paused()
        raise
    else:
        task.end(None)


@contextlib.contextmanager
def resuming(store: TaskStore, tell: Callable[[str], None]) -> Iterator[Pause | None]:
    """Lifts the pause for the run within; gives it, where there was one.

    A run that is about to pause is waited for, a minute at most; `tell` is told so. Raises
    PipelineBusy where it goes on. The pause is put back where nothing was run: ConfigError,
    SourceError, PipelineBusy.
    """
    pause = _lifted(store, tell)
    try:
        yield pause
    except (ConfigError, SourceError, PipelineBusy):
        if pause is not None:
            store.ask_pause(pause)
        raise


def _lifted(store: TaskStore, tell: Callable[[str], None]) -> Pause | None:
    end = time.monotonic() + _WAIT_FOR_A_PAUSE_S
    if store.pause() is not None and is_locked(store.folder):
        tell(f"{store.pipeline} is about to pause; waiting for the end of its run")
    while store.pause() is not None:
        try:
            with pipeline_lock(store.folder):
                return store.clear_pause()
        except PipelineBusy:
            if time.monotonic() > end:
                raise
    return None
