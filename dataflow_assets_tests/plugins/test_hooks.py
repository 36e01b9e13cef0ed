import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.control.slow_project import waiting_run, write_slow
from dataflow_assets_tests.crash.command import Finished, finish, start
from dataflow_assets_tests.plugins.installed import environment_with, events, hooks, install
from dataflow_assets_tests.resume.runs import edit

STEP = ["on_step_start", "on_batch", "on_step_end"]
ASSETS = ["source", "lower", "sized", "long_enough", "unique_state", "unique"]
GATE = "\n  - {name: sized, "
GATED = "checks: [{max_failed_share: 0, blocking: true}]"


@pytest.fixture
def recorded(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small project, whose runs in this process are recorded."""
    monkeypatch.syspath_prepend(install(tmp_path, recorder="Recorder"))
    return project


def sums(project: Path, hook: str, step: str) -> dict[str, int]:
    """What the events of a step add up to."""
    found = [event for event in events(project, hook) if event["step"] == step]
    return {
        "in": sum(event["rows_in"] for event in found),
        "out": sum(event["rows_out"] for event in found),
        "rejected": sum(sum(event["rejected"].values()) for event in found),
        "failed": sum(sum(event["failed"].values()) for event in found),
    }


def test_a_run_tells_of_its_start_its_steps_each_batch_and_its_end(
    recorded: Path, command_here: Command
) -> None:
    assert command_here(recorded, "run", "four.yaml").code == 5
    assert hooks(recorded) == ["on_pipeline_start", *STEP * 6, "on_pipeline_end"]
    assert [event["step"] for event in events(recorded, "on_step_start")] == ASSETS
    batches = [event["batch"] for event in events(recorded, "on_batch") if event["step"] == "sized"]
    assert batches == [f"in_b0000{number}" for number in range(6)]
    assert len({event["run_id"] for event in events(recorded)}) == 1


def test_the_numbers_are_those_of_the_records(recorded: Path, command_here: Command) -> None:
    command_here(recorded, "run", "four.yaml")
    for hook in ("on_batch", "on_step_end"):
        assert sums(recorded, hook, "sized") == {"in": 60, "out": 59, "rejected": 0, "failed": 1}
        assert sums(recorded, hook, "unique") == {"in": 47, "out": 36, "rejected": 11, "failed": 0}
    failed = [event["failed"] for event in events(recorded, "on_batch") if event["failed"]]
    assert failed == [{"ValueError": 1}]


def bring_a_late_column(project: Path) -> None:
    """A second file, whose column the six batches of the first get when all is read."""
    (project / "late.jsonl").write_text('{"n": 60, "text": "x", "late": 1}\n')
    edit(project / "four.yaml", "in.jsonl", "[in.jsonl, late.jsonl]")


def test_a_batch_of_the_source_that_gets_a_later_column_is_counted_once(
    recorded: Path, command_here: Command
) -> None:
    bring_a_late_column(recorded)
    assert "source: 7 batches, 62 rows" in command_here(recorded, "run", "four.yaml").out
    for hook in ("on_batch", "on_step_end"):
        assert sums(recorded, hook, "source")["out"] == 61


def test_the_same_in_dagster(project: Path, tmp_path: Path) -> None:
    bring_a_late_column(project)
    (project / ".dagster_home").mkdir(exist_ok=True)
    assert materialize(project, install(tmp_path, recorder="Recorder"), "four/source").returncode == 0
    for hook in ("on_batch", "on_step_end"):
        assert sums(project, hook, "source")["out"] == 61


def test_the_start_has_the_steps_with_their_parameters(recorded: Path, command_here: Command) -> None:
    command_here(recorded, "run", "four.yaml")
    (started,) = events(recorded, "on_pipeline_start")
    assert started["folder"] == str(recorded / "data" / "four")
    assert started["steps"][0] == {
        "number": 1,
        "name": "lower",
        "type": "lowercase",
        "version": started["steps"][0]["version"],
        "params": {"column": "text", "on_null": "fail"},
    }


def test_batches_that_were_there_are_told_as_reused(recorded: Path, command_here: Command) -> None:
    command_here(recorded, "run", "four.yaml")
    (recorded / "events.jsonl").unlink()
    (recorded / "data/four/four_step1/_commits/in_b00003.json").unlink()
    command_here(recorded, "run", "four.yaml")
    lower = [event for event in events(recorded, "on_batch") if event["step"] == "lower"]
    assert [event["batch"] for event in lower if not event["reused"]] == ["in_b00003"]
    assert len(lower) == 6
    (end,) = [event for event in events(recorded, "on_step_end") if event["step"] == "lower"]
    assert (end["batches"], end["reused"], end["rows_in"]) == (1, 5, 10)


def test_a_failed_check_is_told_and_the_run_is_failed(recorded: Path, command_here: Command) -> None:
    file = recorded / "four.yaml"
    file.write_text(file.read_text().replace("chars: int64}}", f"chars: int64}}}}, {GATED}"))
    assert command_here(recorded, "run", "four.yaml").code == 1
    (failed,) = events(recorded, "on_failure")
    assert failed["error_class"] == "CheckFailed"
    assert "max_failed_share" in failed["message"]
    assert [event["outcome"] for event in events(recorded, "on_pipeline_end")] == ["failed"]


def test_rows_that_are_tried_again_are_told_alone(recorded: Path, command_here: Command) -> None:
    command_here(recorded, "run", "four.yaml")
    (recorded / "events.jsonl").unlink()
    assert command_here(recorded, "retry-failed", "four.yaml").code == 5
    assert hooks(recorded)[0] == "on_pipeline_start"
    assert hooks(recorded).count("on_pipeline_start") == hooks(recorded).count("on_pipeline_end") == 1
    assert sums(recorded, "on_batch", "sized") == {"in": 1, "out": 0, "rejected": 0, "failed": 1}


def test_a_pause_is_told_with_its_cause(tmp_path: Path) -> None:
    site = install(tmp_path, recorder="Recorder")
    folder = write_slow(tmp_path / "project").parent
    with waiting_run(folder, PYTHONPATH=environment_with(site)["PYTHONPATH"]) as process:
        assert finish(start(folder, "pause", "slow.yaml", "--reason", "lunch")).code == 0
    assert finish(process).code == 3
    (paused,) = events(folder, "on_pause")
    assert (paused["cause"], paused["step"]) == ("user", "slow")
    assert "lunch" in paused["message"]
    assert hooks(folder)[-3:] == ["on_step_end", "on_pause", "on_pipeline_end"]
    assert events(folder, "on_step_end")[-1]["outcome"] == events(folder)[-1]["outcome"] == "paused"
    assert not events(folder, "on_failure")


def run_with(project: Path, site: Path, *arguments: str, **more: str) -> Finished:
    return finish(start(project, "run", "four.yaml", *arguments, env=environment_with(site, **more)))


def test_a_plugin_that_raises_stops_nothing_and_is_named_once(project: Path, tmp_path: Path) -> None:
    site = install(
        tmp_path, recorder="Recorder", broken="Broken", leaving="Leaving", unmade="Unmade", gone="Gone"
    )
    done = run_with(project, site)
    assert done.code == 5 and done.is_clean
    said = [line for line in done.err.splitlines() if line.startswith("plugin ")]
    assert sorted(said) == [
        "plugin 'broken' failed in on_batch and is off for the rest of this run: "
        r"ValueError: no more\x1b[2J of in_b00000",
        "plugin 'gone' cannot be imported and is off: AttributeError: module 'other_plugins' has no "
        "attribute 'Gone'",
        "plugin 'leaving' failed in on_step_start and is off for the rest of this run: SystemExit: 9",
        "plugin 'unmade' cannot be made and is off: OSError: nowhere",
    ]
    assert len(events(project, "on_batch")) == 36


def test_the_pipeline_gives_settings_and_switches_off(project: Path, tmp_path: Path) -> None:
    site = install(tmp_path, recorder="Recorder", broken="Broken")
    file = project / "four.yaml"
    file.write_text(
        file.read_text() + "plugins:\n  recorder: {file: other.jsonl}\n  broken: false\n  nowhere: false\n"
    )
    done = run_with(project, site)
    assert done.code == 5 and "plugin" not in done.err
    assert (project / "other.jsonl").is_file()


def test_at_the_end_of_a_run_its_status_is_no_more_running(project: Path) -> None:
    (project / "looks.py").write_text(
        "from dataflow_assets.status import status_of\n\n\nclass Looks:\n"
        "    def on_pipeline_start(self, started):\n        self.work = started.work\n\n"
        "    def on_step_start(self, started):\n        print('then', status_of(self.work).state)\n\n"
        "    def on_pipeline_end(self, ended):\n        print('now', status_of(self.work).state)\n"
    )
    file = project / "four.yaml"
    file.write_text(file.read_text() + 'plugins: {"looks:Looks": {}}\n')
    out = finish(start(project, "run", "four.yaml")).out
    assert "then running" in out and "now done" in out


def test_a_plugin_beside_the_pipeline_needs_no_package(project: Path) -> None:
    (project / "notes.py").write_text(
        "class Notes:\n    def on_pipeline_end(self, ended):\n        print('it is', ended.outcome)\n"
    )
    file = project / "four.yaml"
    file.write_text(file.read_text() + 'plugins: {"notes:Notes": {}, "notes:Nobody": {}}\n')
    done = finish(start(project, "run", "four.yaml"))
    assert done.code == 5 and "it is done" in done.out
    assert "plugin 'notes:Nobody' cannot be imported and is off" in done.err


FOREIGN = """
class Unready:
    @property
    def on_batch(self):
        raise LookupError("not ready")

class Careless:
    def on_batch(self, batch):
        batch.rejected["all"] = batch.rows_in
        batch.failed.clear()
"""


def test_no_plugin_changes_what_the_run_does_or_counts(recorded: Path, command_here: Command) -> None:
    (recorded / "foreign.py").write_text(FOREIGN)
    file = recorded / "four.yaml"
    file.write_text(file.read_text() + 'plugins: {"foreign:Unready": {}, "foreign:Careless": {}}\n')
    done = command_here(recorded, "run", "four.yaml")
    assert done.code == 5 and "'foreign:Unready' failed in on_batch and is off" in done.err
    assert sums(recorded, "on_step_end", "sized") == {"in": 60, "out": 59, "rejected": 0, "failed": 1}
    told = next(line for line in done.out.splitlines() if line.startswith("  sized: "))
    assert "rejected" not in told and told.endswith("1 failed")


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ("recordr: {}", "there is no plugin 'recordr'"),
        ("recorder: {fil: x}", "plugin 'recorder' cannot take its settings"),
        ("metrics: {}", "neither a `file` nor a `port`"),
        ("metrics: {port: 70000}", "'70000' is no port"),
    ],
)
def test_a_mistake_in_the_settings_is_told_before_anything_is_run(
    recorded: Path, command_here: Command, plugins: str, message: str
) -> None:
    file = recorded / "four.yaml"
    file.write_text(file.read_text() + f"plugins: {{{plugins}}}\n")
    done = command_here(recorded, "run", "four.yaml")
    assert done.code == 2 and message in done.err
    assert not (recorded / "data/four/manifest.json").exists()


def materialize(
    project: Path, site: Path, assets: str, *arguments: str, **more: str
) -> subprocess.CompletedProcess:
    """`dagster asset materialize` with these plugins."""
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "dataflow_assets.definitions"]
    values = {"DATAFLOW_PIPELINES": str(project), "DAGSTER_HOME": str(project / ".dagster_home"), **more}
    return subprocess.run(
        [*command, "--select", assets, *arguments],
        cwd=project,
        env=environment_with(site, **values),
        capture_output=True,
        text=True,
    )


def test_a_run_of_dagster_is_told_as_one_run_over_its_assets(project: Path, tmp_path: Path) -> None:
    site = install(tmp_path, recorder="Recorder", broken="Broken")
    assert finish(start(project, "init")).code == 0
    assert materialize(project, site, "four/source").returncode == 0
    assert hooks(project) == ["on_pipeline_start", *STEP, "on_pipeline_end"]
    (project / "events.jsonl").unlink()
    done = materialize(project, site, "four/lower,four/sized", "--partition-range", "in_b00000...in_b00005")
    assert done.returncode == 0, done.stderr[-2000:]
    assert hooks(project) == ["on_pipeline_start", *STEP * 2, "on_pipeline_end"]
    assert {event["run_id"] for event in events(project)} == {
        event["dagster_run_id"] for event in events(project, "on_step_start")
    }
    assert (done.stdout + done.stderr).count("plugin 'broken' failed in on_batch") == 1
    assert [event["batches"] for event in events(project, "on_step_end")] == [6, 6]


def test_a_step_that_fails_in_a_run_of_dagster_is_told(project: Path, tmp_path: Path) -> None:
    site = install(tmp_path, recorder="Recorder")
    assert finish(start(project, "init")).code == 0
    assert materialize(project, site, "four/source").returncode == 0
    (project / "events.jsonl").unlink()
    os.remove(project / "data/four/four_step0/in_b00002.jsonl")
    done = materialize(project, site, "four/lower", "--partition-range", "in_b00000...in_b00005")
    assert done.returncode != 0
    assert hooks(project)[-3:] == ["on_step_end", "on_failure", "on_pipeline_end"]
    assert [event["error_class"] for event in events(project, "on_failure")] == ["MissingBatch"]
    assert [event["outcome"] for event in events(project, "on_pipeline_end")] == ["failed"]
