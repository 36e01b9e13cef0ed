"""SIGKILL before or after one request to the store after another, without the command around it."""

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from dataflow_assets.control import StopFlag, pipeline_lock
from dataflow_assets.io.objects.s3 import S3Store
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.crash.driver import die_after, die_before
from dataflow_assets_tests.objects.bucket import Bucket, write_s3_project

EVERY = 11
Kill = Callable[[object, str, int], None]


def make_all(file: Path) -> None:
    """All batches of all steps, those that are there left alone."""
    work = PipelineWork(load_pipeline(file))
    with pipeline_lock(work.layout.folder):
        if not work.source_is_current():
            list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
        keys = work.known_manifest().batches
        for step in work.pipeline.ordered_steps:
            if (state := work.state(step)) is not None:
                list(state.commit_all(StopFlag()))
            list(work.step(step).stream(keys).commit_all(StopFlag()))


def make_all_until(kill: Kill, moment: int, file: Path, variables: dict[str, str]) -> None:
    """The same in a process of its own, which dies at the moment."""
    os.environ.update(variables)
    kill(S3Store, "put", moment)
    make_all(file)


def killed(kill: Kill, moment: int, file: Path, variables: dict[str, str]) -> bool:
    """Whether that process was killed, and had not ended before."""
    processes = get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    process = processes.Process(target=make_all_until, args=(kill, moment, file, variables))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@pytest.mark.long
@pytest.mark.parametrize(("kill", "is_same_machine"), [(die_before, True), (die_after, False)])
def test_whichever_request_was_the_last_the_next_run_makes_it_whole(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: Kill, is_same_machine: bool
) -> None:
    def machine(bucket: Bucket, name: str) -> tuple[Path, dict[str, str]]:
        folder = tmp_path / bucket.name / name
        write_s3_project(folder, bucket)
        variables = bucket.environment(folder / "cache", DATAFLOW_LEASE_S="1")
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        return folder / "four.yaml", variables

    whole = Bucket.new(endpoint)
    make_all(machine(whole, "undisturbed")[0])
    expected = whole.content(tmp_path / "expected")
    moment = 1
    while killed(kill, moment, *machine(bucket := Bucket.new(endpoint), "killed")):
        make_all(machine(bucket, "killed" if is_same_machine else "other")[0])
        assert bucket.content(tmp_path / bucket.name / "end") == expected, moment
        moment += EVERY
    assert moment > 5 * EVERY
