"""The resume tests of the core, on a Dagster whose state is in PostgreSQL."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets.home import HOME_FOLDER
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control import test_pause, test_stopped_and_killed
from dataflow_assets_tests.control.conftest import slow_result  # noqa: F401
from dataflow_assets_tests.crash.command import run
from dataflow_assets_tests.crash.compare import materialized
from dataflow_assets_tests.crash.project import STEP_NAMES
from dataflow_assets_tests.crash.test_kill_points import BATCHES, KILLED, PLACES, goes_on_right

pytestmark = pytest.mark.filterwarnings("ignore:Found version mismatch")
FEW = ("record_renamed:27", "before_event:25")
# What is told to Dagster is near; the others are the same on every database.
TOLD = [place for place in PLACES if place in FEW or "event" in place or "registering" in place]

test_after_a_kill_the_state_says_so = test_stopped_and_killed.test_after_a_kill_the_state_says_so
test_the_commands_pause_tell_and_resume = test_pause.test_the_commands_pause_tell_and_resume


@pytest.mark.parametrize(
    "place", [place if place in FEW else pytest.param(place, marks=pytest.mark.long) for place in TOLD]
)
def test_a_killed_run_goes_on(project: Path, undisturbed: Path, place: str) -> None:
    assert run(project, kill=place).code == KILLED
    goes_on_right(project, undisturbed)
    for step in STEP_NAMES:
        assert sorted(materialized(project / HOME_FOLDER, step)) == BATCHES


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_goes_on(
    slow: Path,
    slow_result: dict[str, object],  # noqa: F811
    command_here: Command,
    number: signal.Signals,
) -> None:
    again = test_stopped_and_killed.test_a_signal_leaves_a_partial_state_and_run_goes_on
    again(slow, slow_result, command_here, number)


def test_all_that_dagster_knows_is_in_the_database(
    project: Path, rows_in_database: Callable[[str], int]
) -> None:
    run(project)
    assert rows_in_database("event_logs") > 0 and rows_in_database("runs") == 1
    assert not list(project.rglob("*.db"))
