"""Checks through the real commands: `dataflow-assets run` and `status`, `dagster asset materialize`."""

import json
import subprocess
import sys

import dagster as dg
import pytest

from dataflow_assets_tests.checks.projects import BLOCKS_EACH, BLOCKS_FAILED, evaluations, project_with, steps
from dataflow_assets_tests.crash import command as cli
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject

WARNS = "{column: answer, max_duplicate_share: 0}"


def run(folder, *arguments):
    return cli.finish(
        cli.start(folder, *arguments, env=cli.environment({"DATAFLOW_ROOT": str(folder / "root")}))
    )


def dagster(folder, selection, *options):
    names = {"DATAFLOW_PIPELINES": str(folder), "DATAFLOW_ROOT": str(folder / "root")}
    arguments = ["-m", "dataflow_assets.definitions", "--select", selection, *options]
    return subprocess.run(
        [sys.executable, "-m", "dagster", "asset", "materialize", *arguments],
        cwd=folder,
        env=cli.environment(names),
        capture_output=True,
        text=True,
        timeout=cli.LIMIT_S,
    )


def in_its_home(folder):
    return dg.DagsterInstance.from_config(str(folder / ".dagster_home"))


def test_a_blocking_check_ends_the_command_with_1_and_a_raised_limit_goes_on(tmp_path):
    project = project_with(tmp_path, BLOCKS_FAILED, WARNS)
    stopped = run(tmp_path, "run", "small.yaml")
    assert (stopped.code, stopped.is_clean) == (1, True)
    assert "error: step 'answers': blocking check 'failed_share' failed: 0.166667" in stopped.err
    assert project.committed("last") == set()
    project.set_steps(steps("{max_failed_share: 0.2, blocking: true}", WARNS))
    resumed = run(tmp_path, "run", "small.yaml")
    assert resumed.code == 5
    assert "answers: 3/3" not in resumed.out
    assert "answers: check failed_share passed: 0.166667 (max_failed_share 0.2), blocking" in resumed.out
    assert "answers: check duplicate_share_answer passed: 0 (max_duplicate_share 0), a warning" in resumed.out


def test_the_status_has_each_check(tmp_path):
    project_with(tmp_path, BLOCKS_FAILED)
    run(tmp_path, "run", "small.yaml")
    status = json.loads(run(tmp_path, "status", "small.yaml", "--json").out)
    (check,) = status["steps"][1]["checks"]
    assert (status["state"], check["name"], check["passed"]) == ("failed", "failed_share", False)
    assert (check["value"], check["limit"]) == (pytest.approx(1 / 6), {"max_failed_share": 0.1})
    assert "'failed_share' failed" in status["why"]


def test_a_batch_that_fails_stops_the_command_early(tmp_path):
    project = project_with(tmp_path, BLOCKS_EACH)
    assert run(tmp_path, "run", "small.yaml").code == 1
    assert project.committed("answers") == {"a_b00000", "a_b00001"}
    with in_its_home(tmp_path) as instance:
        known = SmallProject(tmp_path, steps(BLOCKS_EACH), instance=instance)
        told = evaluations(known, "failed_share_each_batch")
    assert told == [(True, "a_b00000", 0.0), (False, "a_b00001", 0.5), (False, None, 0.5)]


def test_without_a_batch_size_a_check_is_of_the_one_file(tmp_path):
    project_with(tmp_path, BLOCKS_FAILED)
    file = tmp_path / "small.yaml"
    file.write_text(file.read_text().replace("batch_rows: 2", "batch_rows: null"))
    stopped = run(tmp_path, "run", "small.yaml")
    assert (stopped.code, "0.166667 in 1 batch," in stopped.err) == (1, True)
    assert (tmp_path / "root/small/small_step2.jsonl").is_file()
    assert not (tmp_path / "root/small/small_step3.jsonl").exists()


def test_dagster_materializes_up_to_a_blocking_check_and_knows_why(tmp_path):
    project = project_with(tmp_path, BLOCKS_FAILED)
    run(tmp_path, "init")
    assert dagster(tmp_path, 'key:"small/source"').returncode == 0
    done = dagster(tmp_path, "group:small", "--partition-range", "a_b00000...a_b00002")
    assert done.returncode == 1
    assert "blocking asset check failed" in done.stdout + done.stderr
    assert (len(project.committed("answers")), len(project.committed("last"))) == (3, 0)
    with in_its_home(tmp_path) as instance:
        told = evaluations(SmallProject(tmp_path, steps(BLOCKS_FAILED), instance=instance), "failed_share")
    assert told == [(False, None, 1 / 6)]


def test_dagster_goes_on_behind_a_warning(tmp_path):
    project = project_with(tmp_path, "{max_failed_share: 0.1}")
    run(tmp_path, "init")
    dagster(tmp_path, 'key:"small/source"')
    done = dagster(tmp_path, "group:small", "--partition-range", "a_b00000...a_b00002")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(project.committed("last")) == 3
