"""A run that is paused from another process: exact files, a whole state, and `resume` as if nothing was."""

import random
from pathlib import Path

from dataflow_assets.control import Pause, pipeline_lock
from dataflow_assets.home import HOME_FOLDER
from dataflow_assets.task_state import now
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control.slow_project import (
    BATCHES,
    committed,
    run_statuses,
    start_slowly,
    state_of,
    status_json,
    store_of,
    wait_for_batches,
    waiting_run,
)
from dataflow_assets_tests.crash.command import Finished, command, finish, start
from dataflow_assets_tests.crash.compare import final_files, records, temporaries
from dataflow_assets_tests.crash.gate import wait_until

PAUSE = Pause("slow", "somebody@here", now(), "the server is needed")


def paused_at(folder: Path, batches: int, *arguments: str) -> Finished:
    """A run, or a resume, that is paused once it has this many batches."""
    process = start_slowly(folder, *arguments)
    wait_for_batches(folder, process, batches)
    with store_of(folder) as store:
        store.ask_pause(PAUSE)
    return finish(process)


def test_paused_at_random_moments_it_ends_with_the_files_of_an_undisturbed_run(
    slow: Path, slow_result: dict[str, object]
) -> None:
    moments, before, verb, pauses = random.Random(3), {}, "run", 0
    while len(done := committed(slow)) < BATCHES - 2:
        ended = paused_at(slow, len(done) + moments.randrange(5), verb)
        assert ended.code in (0, 3) and ended.is_clean, ended
        if ended.code == 3:
            check_state(slow, before)
            pauses += 1
        before, verb = records(slow / "data"), "resume"
    assert pauses >= 3
    assert finish(start_slowly(slow, "resume")).code == 0
    assert final_files(slow / "data") == slow_result
    assert state_of(slow).state == "done"


def check_state(folder: Path, before: dict[str, bytes]) -> None:
    """Nothing is half written or made again, and the state says exactly how far the run came."""
    state, made = state_of(folder), committed(folder)
    assert temporaries(folder / "data") == []
    assert {path: data for path, data in records(folder / "data").items() if path in before} == before
    assert (state.state, state.who, state.why) == ("paused", PAUSE.who, PAUSE.why)
    assert run_statuses(folder) == ["CANCELED"] * len(run_statuses(folder))
    if state.step == "slow":
        assert state.batch == made[-1]
        assert state.batches is not None and state.batch is not None
        assert state.batches.first <= state.batch <= state.batches.last == f"in_b{BATCHES - 1:05}"


def test_a_pause_that_the_run_cannot_see_is_not_promised(slow: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with waiting_run(slow) as process:
        asked = command(elsewhere, "pause", str(slow / "slow.yaml"))
    assert (asked.code, asked.is_clean) == (1, True), asked
    assert f"the Dagster home {elsewhere / HOME_FOLDER} knows no run of" in asked.err
    assert finish(process).code == 0


def test_a_pause_while_rows_are_put_back_or_a_run_begins_waits_a_moment(slow: Path) -> None:
    (slow / HOME_FOLDER).mkdir()
    with store_of(slow) as store, pipeline_lock(store.folder):
        asking = start(slow, "pause", "slow.yaml")
        wait_until(lambda: store.pause() is not None, asking)
    asked = finish(asking)
    assert asked.code == 0 and "is paused" in asked.out


def test_the_commands_pause_tell_and_resume(
    slow: Path, slow_result: dict[str, object], command_here: Command
) -> None:
    with waiting_run(slow) as process:
        asked = command(slow, "pause", "slow.yaml", "--reason", "the server is needed")
    assert "slow was asked to pause" in asked.out
    assert finish(process).code == 3
    refused = command_here(slow, "run", "slow.yaml")
    assert (refused.code, refused.is_clean) == (3, True), refused
    assert "because the server is needed; `dataflow-assets resume slow.yaml` goes on" in refused.err
    found = status_json(command_here, slow)
    assert found["state"] == "paused" and found["paused"]["batch"] == committed(slow)[-1]
    assert (found["paused"]["why"], found["paused"]["step"]) == ("the server is needed", "slow")
    assert command_here(slow, "resume", "slow.yaml").code == 0
    assert final_files(slow / "data") == slow_result
    done = status_json(command_here, slow)
    assert (done["state"], done["paused"], done["why"]) == ("done", None, "")


def test_a_pause_before_the_first_run_holds_and_a_second_changes_nothing(
    slow: Path, command_here: Command
) -> None:
    assert command_here(slow, "pause", "slow.yaml", "--reason", "first").code == 0
    again = command_here(slow, "pause", "slow.yaml", "--reason", "second")
    assert again.code == 0 and "nothing changed: slow.yaml is paused by" in again.out
    assert "because first" in again.out and "second" not in again.out
    assert command_here(slow, "run", "slow.yaml").code == 3
    found = status_json(command_here, slow)
    assert (found["state"], found["paused"]["step"]) == ("paused", None)
    assert not (slow / "data" / "slow").exists()


def test_a_resume_right_after_a_pause_waits_for_the_run_to_end(slow: Path) -> None:
    with waiting_run(slow) as process, store_of(slow) as store:
        store.ask_pause(PAUSE)
        resuming = start(slow, "resume", "slow.yaml")
        wait_until(lambda: "is about to pause" in resuming.texts()[0], resuming)
    ended, resumed = finish(process), finish(resuming)
    assert (ended.code, resumed.code) == (3, 0), resumed
    assert "slow was paused by somebody@here" in resumed.out


def test_a_resume_of_what_is_not_paused_runs_it(
    slow: Path, slow_result: dict[str, object], command_here: Command
) -> None:
    assert command_here(slow, "resume", "slow.yaml").code == 0
    assert final_files(slow / "data") == slow_result


def test_a_resume_that_cannot_begin_leaves_the_pause(slow: Path, command_here: Command) -> None:
    assert command_here(slow, "pause", "slow.yaml").code == 0
    refused = command_here(slow, "resume", "slow.yaml", "--input", "nothing.jsonl")
    assert (refused.code, status_json(command_here, slow)["state"]) == (2, "paused"), refused
