"""The state of a pipeline as a task: new, running, paused, failed, partial or done, in Dagster's storage."""

import contextlib
import gc
import getpass
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson
import xxhash
from dotenv import dotenv_values

from dataflow_assets.control import Pause, is_locked
from dataflow_assets.errors import ConfigError, PauseCause
from dataflow_assets.home import ENV_FILE, HOME_FOLDER, dagster_errors
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.catalog import find_pipeline

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from dataflow_assets.pipeline_work import PipelineWork

State = Literal["new", "running", "paused", "failed", "partial", "done"]
Cause = PauseCause | Literal["signal", "killed", "error"]
# The tag of a run that a job of Dagster began: the run of that job.
LAUNCHED_BY = "dataflow/launched_by"


@dataclass(frozen=True)
class Batches:
    """The first and the last batch that a step was to make, and how many were committed or found."""

    first: str
    last: str
    done: int


@dataclass(frozen=True)
class TaskState:
    """Where a pipeline stands, and how it came to stand there.

    `step`, `batch` and `batches` say how far the last run came: the asset, its newest committed
    batch, its range. `who` is a user (`name@host`), `budget`, `breaker`, a signal or `Dagster UI`;
    `when` is ISO 8601 in UTC. `run_id` is Dagster's. `held_batches`, of `held_bytes`, are in memory and
    not yet committed (`write: lazy`). `killed_at` is the `place` of the run before, where it was killed.
    """

    pipeline: str
    state: State
    step: str | None = None
    batch: str | None = None
    batches: Batches | None = None
    cause: Cause | None = None
    who: str | None = None
    when: str = ""
    why: str = ""
    run_id: str | None = None
    held_batches: int = 0
    held_bytes: int = 0
    killed_at: str | None = None

    @property
    def place(self) -> str:
        """How far the run came."""
        return f"{self.step} {self.batch} {self.batches and self.batches.done}"

    @property
    def held(self) -> str:
        """`12 batches (3.4 MB)`."""
        return f"{self.held_batches:,} batches ({self.held_bytes / 1e6:,.1f} MB)"

    def to_text(self) -> str:
        """The state as it is stored."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_text(cls, text: str) -> "TaskState":
        """The state that was stored."""
        fields = orjson.loads(text)
        if fields["batches"] is not None:
            fields["batches"] = Batches(**fields["batches"])
        return cls(**fields)


class TaskStore:
    """The one place where the state of the pipeline in `folder` stands: two values in Dagster's storage.

    One is the pause, written by whoever asks for it, so that no run can overwrite it; the other is
    what the last run said of itself. All methods raise the errors of Dagster's database.
    """

    def __init__(self, instance: "DagsterInstance", folder: Path) -> None:
        self.instance = instance
        self.folder = folder.resolve()
        self.pipeline = folder.name
        place = f"{self.pipeline}/{xxhash.xxh3_128_hexdigest(place_of(self.folder).encode())}"
        self._state_key, self._pause_key = f"dataflow/state/{place}", f"dataflow/pause/{place}"
        self._flush_key = f"dataflow/flush/{place}"

    def pause(self) -> Pause | None:
        """The pause that was asked for and not yet lifted."""
        text = self._get(self._pause_key)
        return Pause(**orjson.loads(text)) if text else None

    def ask_pause(self, pause: Pause) -> Pause:
        """Pauses the pipeline, or asks its run to; where it is paused already, the first pause stays.

        Gives the pause that holds.
        """
        first = self.pause()
        if first is None:
            self._set(self._pause_key, orjson.dumps(asdict(pause)).decode())
        return first or pause

    def clear_pause(self) -> Pause | None:
        """Lifts the pause and gives it, where there was one."""
        pause = self.pause()
        if pause is not None:
            self._set(self._pause_key, "")
        return pause

    def ask_flush(self) -> None:
        """Asks the run to commit the batches that it holds in memory."""
        self._set(self._flush_key, now())

    def take_flush(self) -> bool:
        """Whether that was asked for since the last time."""
        asked = bool(self._get(self._flush_key))
        if asked:
            self._set(self._flush_key, "")
        return asked

    def raise_if_paused(self) -> None:
        """Raises Paused, with who, when and why, while the pipeline is paused."""
        pause = self.pause()
        if pause is not None:
            raise pause.error()

    def write(self, state: TaskState) -> None:
        """Keeps what a run says of itself."""
        self._set(self._state_key, state.to_text())

    def state(self) -> TaskState | None:
        """The state now; None where nothing was ever run or paused."""
        running = is_locked(self.folder)
        stored, pause = self._stored(), self.pause()
        if running:
            asked = [f"{pause.who} asked it to pause"] if pause is not None else []
            state = stored or TaskState(self.pipeline, "running")
            held = [f"{state.held} are in memory, not yet committed"] if state.held_batches else []
            return replace(state, state="running", why="; ".join([*asked, *held]))
        if pause is not None:
            return _paused(stored or TaskState(self.pipeline, "new"), pause)
        if stored is not None and stored.state == "running":
            return self._left_running(stored)
        if stored is not None and stored.state == "paused":
            return replace(stored, state="partial")  # resumed, and not yet running
        return stored

    def left_running(self) -> TaskState | None:
        """The state of a killed run, for the one that holds the lock and has not written yet."""
        stored = self._stored()
        return stored if stored is not None and stored.state == "running" else None

    def _left_running(self, stored: TaskState) -> TaskState:
        """The state of a run that was killed, unless the run has begun or ended just now."""
        if is_locked(self.folder):
            return stored
        again = self._stored()
        if again is not None and again != stored:
            return again
        why = f"its run, begun at {stored.when} by {stored.who}, was killed"
        why += f"; {stored.held}, held in memory, are made again" if stored.held_batches else ""
        return replace(stored, state="partial", cause="killed", who=None, why=why)

    def _stored(self) -> TaskState | None:
        text = self._get(self._state_key)
        return TaskState.from_text(text) if text else None

    def _get(self, key: str) -> str | None:
        return self.instance.daemon_cursor_storage.get_cursor_values({key}).get(key)

    def _set(self, key: str, value: str) -> None:
        self.instance.daemon_cursor_storage.set_cursor_values({key: value})


def _paused(state: TaskState, pause: Pause) -> TaskState:
    return replace(state, state="paused", cause=pause.cause, who=pause.who, when=pause.when, why=pause.why)


def read_state(instance: "DagsterInstance", work: "PipelineWork") -> TaskState | None:
    """The state of a pipeline now; None where nothing was ever run or paused."""
    return TaskStore(instance, work.layout.folder).state()


def pause_requested(instance: "DagsterInstance", work: "PipelineWork") -> Pause | None:
    """The pause that was asked for and not yet lifted."""
    return TaskStore(instance, work.layout.folder).pause()


def existing_state(work: "PipelineWork", folder: Path) -> TaskState | None:
    """The state as the Dagster home that holds in `folder` has it; None where there is no home.

    Makes nothing. Raises StorageError where the home cannot be read.
    """
    with existing_instance(folder) as instance:
        return None if instance is None else read_state(instance, work)


@contextlib.contextmanager
def existing_instance(folder: Path) -> "Iterator[DagsterInstance | None]":
    """The instance of the home that holds in `folder`, where there is one; Dagster is imported only then."""
    named = os.environ.get("DAGSTER_HOME") or dotenv_values(folder / ENV_FILE).get("DAGSTER_HOME")
    home = Path(named) if named else folder / HOME_FOLDER
    if not (home / "dagster.yaml").is_file():
        yield None
        return
    gc.disable()  # as in the command: Dagster is imported here
    import dagster as dg
    from yaml import YAMLError

    gc.enable()

    with (
        dagster_errors(home, dg.DagsterError, OSError, YAMLError),
        dg.DagsterInstance.from_config(str(home)) as instance,
    ):
        yield instance


def new_pause(pipeline: Pipeline, why: str, who: str | None = None) -> Pause:
    """A pause that a person asks for now."""
    return Pause(resume_argument(pipeline), who or this_user(), now(), pipeline.redacted(why))


def resume_argument(pipeline: Pipeline) -> str:
    """What the command takes for this pipeline: its name where the catalog has it, else its file."""
    with contextlib.suppress(ConfigError):
        if find_pipeline(pipeline.name).file == pipeline.file:
            return pipeline.name
    if pipeline.file is None:
        return pipeline.name
    file, here = pipeline.file.resolve(), Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def this_user() -> str:
    """`name@host`."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = f"uid {os.getuid()}"
    return f"{name}@{socket.gethostname()}"


def now() -> str:
    """The time in UTC, in whole seconds."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
