"""Dagster's partitions and materializations are those of the files, whatever was killed or copied."""

import signal
import subprocess
import sys

import dagster as dg
import pytest

from dataflow_assets.errors import MissingBatch, StorageError
from dataflow_assets.home import SETTINGS
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.mirror import register_batches, repair_mirror
from dataflow_assets_tests.dagster_side.row_functions import GATES
from dataflow_assets_tests.dagster_side.small_pipelines import NAMES, WHOLE, SmallProject, another_home
from dataflow_assets_tests.dagster_side.subprocesses import with_package_path
from dataflow_assets_tests.dagster_side.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
GATED = """\
  - {name: lower, type: lowercase, params: {column: text}}
  - name: gated
    type: map_python
    params: {function: "dataflow_assets_tests.dagster_side.row_functions:wait_at_gate"}
"""
STEPS = [name for name in NAMES if name not in WHOLE]


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One", "two", "Two", "x", "y", "three"])
    return project


def test_partitions_are_the_batches_in_their_order(project):
    project.write_rows("c", ["last"])
    project.run()
    project.write_rows("b", ["between"])
    project.run()
    assert project.batches == ["a_b00000", "a_b00001", "a_b00002", "b_b00000", "c_b00000"]
    assert project.materialized("last") == set(project.batches)


def test_batches_that_the_source_no_longer_has_are_no_partitions(project):
    project.run()
    project.write_rows("a", ["One", "two"])
    project.run()
    assert project.batches == ["a_b00000"]
    assert project.committed("last") == {"a_b00000"}


@pytest.mark.parametrize("present", [[], ["a", "b", "c"], ["c", "a"], ["x", "a", "b"], ["a", "b", "c", "d"]])
def test_register_makes_exactly_these_partitions(present, tmp_path):
    instance = dg.DagsterInstance.ephemeral(tempdir=str(tmp_path))
    instance.add_dynamic_partitions("p", present)
    register_batches(instance, "p", ["a", "b", "c"])
    assert instance.get_dynamic_partitions("p") == ["a", "b", "c"]


def test_a_batch_whose_event_was_lost_gets_one(project):
    project.run()
    project.instance.wipe_assets([project.key("unique")])
    project.run()
    assert project.materialized("unique") == project.committed("unique")
    assert project.event_count("unique") == 3
    assert project.stale() == {}


def test_a_repair_with_nothing_to_repair_writes_nothing(project):
    project.run()
    assert repair_mirror(project.work, project.instance, project.work.known_manifest()) == 0


def test_a_repaired_batch_has_its_numbers_and_preview(project):
    project.run()
    project.instance = another_home(project)
    project.run()
    metadata = project.metadata("unique", "a_b00000")
    assert (metadata["rows_in"], metadata["dagster/row_count"]) == (2, 2)
    assert "| one |" in metadata["preview"]
    assert project.metadata("source")["dagster/row_count"] == 6


def test_a_deleted_file_is_made_again_and_told(project):
    project.run()
    project.work.folder_of("unique").file_of("a_b00001").unlink()
    project.run()
    assert project.committed("unique") == project.materialized("unique")
    assert project.event_count("unique") == 4


def test_a_run_from_the_ui_before_the_source_was_read_says_what_to_do(project):
    project.instance.add_dynamic_partitions("small", ["a_b00000"])
    with pytest.raises(Exception, match="'source' first"):
        project.run_in_ui("lower", keys=("a_b00000", "a_b00000"))


def test_a_dataset_step_over_a_part_of_the_batches_names_the_one_that_it_lacks(project):
    project.run_in_ui("source")
    with pytest.raises(MissingBatch, match="batch 'a_b00001' of step 'long-enough' is not committed"):
        project.run_in_ui(*NAMES[1:], keys=("a_b00000", "a_b00000"))
    assert project.materialized("long-enough") == project.committed("long-enough") == {"a_b00000"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    gates = tmp_path / "gates"
    gates.mkdir()
    for name, value in {**SETTINGS, "DAGSTER_HOME": str(home), GATES: str(gates)}.items():
        monkeypatch.setenv(name, value)
    return home


def start_command(project):
    command = [sys.executable, "-m", "dataflow_assets", "run", "small.yaml", "--root", "root"]
    return subprocess.Popen(command, cwd=project.folder, env=with_package_path(), stdout=subprocess.DEVNULL)


def open_gates(tmp_path, names):
    for name in names:
        (tmp_path / "gates" / name).touch()


def test_after_a_kill_in_mid_run_the_next_run_makes_partitions_equal_to_files(tmp_path, home):
    project = SmallProject(tmp_path / "p", steps=GATED)
    project.write_rows("a", [f"g{n}" for n in range(8)])
    open_gates(tmp_path, ["g0", "g1", "g2", "g3"])
    process = start_command(project)
    wait_until(lambda: (tmp_path / "gates" / "g4.reached").exists() and len(project.committed("gated")) == 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with dg.DagsterInstance.get() as project.instance:
        assert project.materialized("gated") <= project.committed("gated") == {"a_b00000", "a_b00001"}
        open_gates(tmp_path, [f"g{n}" for n in range(8)])
        project.run()
        for name in ("lower", "gated"):
            assert project.materialized(name) == project.committed(name) == set(project.batches)
            assert len(project.batches) == 4
        assert project.stale() == {}
        assert project.event_count("gated") in (4, 5, 6)


def test_no_partition_counts_as_failed_after_a_run_that_resumed_a_killed_one(tmp_path, home):
    project = SmallProject(tmp_path / "p", steps=GATED)
    project.write_rows("a", [f"g{n}" for n in range(4)])
    open_gates(tmp_path, ["g0", "g1"])
    process = start_command(project)
    wait_until(lambda: (tmp_path / "gates" / "g2.reached").exists())
    process.send_signal(signal.SIGKILL)
    process.wait()
    open_gates(tmp_path, ["g2", "g3"])
    with dg.DagsterInstance.get() as project.instance:
        project.run()
        for record in project.instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            project.instance.report_run_failed(record.dagster_run)
        assert project.failed("gated") == project.failed("lower") == set()
        assert project.materialized("gated") == set(project.batches)


def test_batches_that_a_failed_run_left_as_they_were_do_not_count_as_failed(project, monkeypatch):
    project.run()
    folder = project.work.folder_of("last")
    for batch in ("a_b00000", "a_b00002"):
        folder.remove(batch)
    commit = StepFolder.commit

    def fail_at_the_last(self, prepared):
        if prepared.record.batch == "a_b00002":
            raise StorageError("no room")
        return commit(self, prepared)

    monkeypatch.setattr(StepFolder, "commit", fail_at_the_last)
    with pytest.raises(StorageError):
        project.run()
    assert project.failed("last") == set()
    assert project.committed("last") == {"a_b00000", "a_b00001"}


def test_what_a_failed_launch_left_committed_is_no_longer_failed_after_the_next_run(project, monkeypatch):
    project.run()
    monkeypatch.setattr("dataflow_assets.io.step_files.StepFilesIOManager.handle_output", None)
    with pytest.raises(TypeError):
        project.run_in_ui("last", keys=("a_b00000", "a_b00002"))
    assert project.failed("last") == set(project.batches)
    monkeypatch.undo()
    project.run()
    assert project.failed("last") == set()
    assert project.materialized("last") == set(project.batches)
