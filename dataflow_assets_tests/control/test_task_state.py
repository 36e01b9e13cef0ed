"""The state itself: what is kept of every way in which a run ends, and who may change it."""

import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.control import Pause, is_locked, pipeline_lock
from dataflow_assets.errors import Paused, PipelineBusy, RunError, Stopped
from dataflow_assets.running_task import resuming, running_task
from dataflow_assets.task_state import Batches, TaskState, TaskStore, new_pause, now
from dataflow_assets_tests.control.slow_project import work_of


@pytest.fixture
def store(instance: dg.DagsterInstance, tmp_path: Path) -> TaskStore:
    return TaskStore(instance, tmp_path / "four")


def asked(store: TaskStore, why: str = "") -> Pause:
    return store.ask_pause(Pause("four", "somebody@here", now(), why))


def ended(store: TaskStore, error: BaseException | None = None) -> TaskState:
    """The state that a run leaves that ended with this error in the second of three batches."""
    raised = pytest.raises(type(error)) if error else contextlib.nullcontext()
    with raised, pipeline_lock(store.folder), running_task(store) as task:
        task.begin_step("lower", ("b0", "b2"), "run")
        for batch in ("b0", "b1"):
            task.committed(batch)
        if error:
            raise error
    state = store.state()
    assert state is not None
    return state


def test_what_was_never_run_has_no_state(store: TaskStore) -> None:
    assert (store.state(), store.pause()) == (None, None)


@pytest.mark.parametrize(
    ("error", "state", "cause"),
    [
        (None, "partial", None),
        (Stopped("stopped"), "partial", "signal"),
        (RunError("broken"), "failed", "error"),
        (KeyboardInterrupt(), "failed", "error"),
        (Paused("used up", "budget"), "paused", "budget"),
        (Paused("wrong key", "breaker"), "paused", "breaker"),
    ],
)
def test_every_end_says_how_far_the_run_came(
    store: TaskStore, error: BaseException | None, state: str, cause: str | None
) -> None:
    found = ended(store, error)
    assert (found.state, found.cause) == (state, cause)
    assert (found.step, found.batch, found.batches) == ("lower", "b1", Batches("b0", "b2", 2))
    assert found.run_id == "run" and found.when.endswith("Z")


def test_a_pause_of_a_budget_stands_and_says_how_to_go_on(store: TaskStore) -> None:
    assert ended(store, Paused("5.00 are spent", "budget")).who == "budget"
    with pytest.raises(
        Paused, match=r"budget since .* because 5.00 are spent; `dataflow-assets resume four`"
    ):
        store.raise_if_paused()


def test_while_it_runs_the_state_is_running_and_names_who_asked_for_a_pause(store: TaskStore) -> None:
    with pipeline_lock(store.folder), running_task(store):
        asked(store)
        state = store.state()
    assert state is not None and (state.state, state.why) == ("running", "somebody@here asked it to pause")


def test_a_pause_raises_the_flag_of_a_run_in_another_thread(tmp_path: Path) -> None:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as kept:  # nobody pauses an ephemeral instance
        seen, pause = paused_from_outside(TaskStore(kept, tmp_path / "four"))
    assert seen == [pause]


def paused_from_outside(store: TaskStore) -> tuple[list[Pause | None], Pause]:
    """What a running task in another thread saw of a pause, and the pause."""
    seen: list[Pause | None] = []

    def run() -> None:
        with pipeline_lock(store.folder), running_task(store) as task:
            begun.set()
            while not task.stop:
                time.sleep(0.01)
            seen.append(task.stop.paused)

    begun, thread = threading.Event(), threading.Thread(target=run)
    thread.start()
    assert begun.wait(60)
    pause = asked(store, "now")
    thread.join(60)
    return seen, pause


def test_the_same_run_within_a_run_has_the_same_flag(store: TaskStore) -> None:
    with running_task(store) as outer, running_task(store, run_id="inner") as inner:
        assert inner is outer


def test_what_is_paused_does_not_begin_and_keeps_its_state(store: TaskStore) -> None:
    before = ended(store)
    asked(store)
    with pytest.raises(Paused), running_task(store):
        raise AssertionError("it began")
    store.clear_pause()
    assert store.state() == before


def test_a_killed_run_is_told_from_one_that_runs(store: TaskStore) -> None:
    store.write(TaskState("four", "running", "lower", "b1", who="a@b", when=now()))
    state = store.state()
    assert state is not None and (state.state, state.cause) == ("partial", "killed")
    with pipeline_lock(store.folder):
        state = store.state()
    assert state is not None and state.state == "running"


def test_a_resume_that_was_refused_leaves_the_pause(store: TaskStore) -> None:
    pause = asked(store, "first")
    with pytest.raises(PipelineBusy), resuming(store, print):
        raise PipelineBusy("somebody else was faster")
    assert store.pause() == pause


def test_secrets_are_in_no_state(slow: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOKEN", "hunter2hunter2")
    file = slow / "slow.yaml"
    file.write_text("description: ${TOKEN}\n" + file.read_text())
    work = work_of(file)
    store = TaskStore(instance, work.layout.folder)
    with pytest.raises(RunError), pipeline_lock(store.folder), running_task(store, work):
        raise RunError("the server refused hunter2hunter2")
    asking = new_pause(work.pipeline, "hunter2hunter2 leaked")
    state = store.state()
    assert state is not None and state.why.startswith("the server refused")
    assert "hunter2" not in state.why + asking.why


def test_without_the_pipeline_only_the_kind_of_an_error_is_kept(store: TaskStore) -> None:
    assert ended(store, RunError("password 1234")).why == "RunError; its message is in the run of Dagster"


ACTS = st.lists(st.sampled_from(["pause", "resume", "run", "budget", "fail", "kill"]), max_size=12)


@given(ACTS)
@settings(deadline=None, max_examples=40)
def test_only_a_resume_lifts_a_pause_and_the_first_one_holds(acts: list[str]) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        store, holds = TaskStore(instance, Path("nowhere") / "four"), None
        for number, act in enumerate(acts):
            holds = acted(store, act, str(number), holds)
            pause = store.pause()
            assert (pause and pause.why) == holds
            state = store.state()
            assert (state is not None and state.state == "paused") == (holds is not None)


def acted(store: TaskStore, act: str, why: str, holds: str | None) -> str | None:
    """Does one act; the reason of the pause that must hold afterwards."""
    if act == "pause":
        asked(store, why)
        return holds or why
    if act == "resume":
        store.clear_pause()
        return None
    errors = {"budget": Paused(why, "budget"), "fail": RunError(why), "run": None}
    if act == "kill" and holds is None:
        store.write(TaskState("four", "running"))
    elif act != "kill":
        with contextlib.suppress(Paused, RunError), running_task(store):
            if errors[act] is not None:
                raise errors[act]
    return (holds or why) if act == "budget" else holds


def test_another_thread_is_refused_as_another_process_is(store: TaskStore) -> None:
    def taken() -> None:
        with pipeline_lock(store.folder):
            pass

    with pipeline_lock(store.folder), pipeline_lock(store.folder), ThreadPoolExecutor(1) as threads:
        with pytest.raises(PipelineBusy, match=f"is being run by process {os.getpid()} "):
            threads.submit(taken).result()
        assert is_locked(store.folder)
    taken()
