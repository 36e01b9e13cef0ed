"""Two machines that want to run one pipeline: one does, and nothing that both wrote is wrong."""

import os
import re
import signal
from pathlib import Path

import pytest

from dataflow_assets.errors import PipelineBusy
from dataflow_assets_tests.crash.command import Running, finish
from dataflow_assets_tests.crash.gate import GATE_STEPS, gated, wait_until
from dataflow_assets_tests.objects.bucket import Bucket, Machine, new_machine


def machine_at_the_gate(folder: Path, bucket: Bucket) -> Machine:
    machine = new_machine(folder, bucket)
    file = folder / "four.yaml"
    head = file.read_text().partition("steps:")[0]
    file.write_text(head + GATE_STEPS.replace("WORKERS", ""))
    return machine._replace(variables={**machine.variables, **gated(folder)})


def at_the_gate(machine: Machine) -> Running:
    """A run that waits in the middle of a row, with the lease."""
    process = machine.start("run", "four.yaml")
    wait_until(lambda: any(machine.folder.glob("worker_*")), process)
    return process


@pytest.fixture
def first(tmp_path: Path, bucket: Bucket) -> Machine:
    return machine_at_the_gate(tmp_path / "first", bucket)


@pytest.fixture
def second(tmp_path: Path, first: Machine) -> Machine:
    """Another machine with the same pipeline, whose gate is open."""
    machine = machine_at_the_gate(tmp_path / "second", first.bucket)
    (machine.folder / "gate").unlink()
    return machine


def test_while_one_machine_runs_another_is_refused_and_sees_it(first: Machine, second: Machine) -> None:
    running = at_the_gate(first)
    refused = second.run()
    assert refused.code == 2
    assert f"is being run by process {running.pid} on" in refused.err
    assert "four: running" in second.command("status", "four.yaml").out
    (first.folder / "gate").unlink()
    assert finish(running).code == 0
    assert "nothing to do" in second.run().out


def test_a_run_that_was_stopped_too_long_is_taken_over_and_does_no_harm(first, second, tmp_path) -> None:
    stopped = at_the_gate(first)
    os.kill(stopped.pid, signal.SIGSTOP)
    assert second.run().code == 0
    content = first.bucket.content(tmp_path / "content")
    (first.folder / "gate").unlink()
    os.kill(stopped.pid, signal.SIGCONT)
    late = finish(stopped)
    assert late.code == 2
    assert re.search("was (taken over|written) by another process", late.err)  # the lease, or the record
    assert "nothing to do" in second.run().out
    assert first.bucket.content(tmp_path / "again") == content


def test_of_two_that_commit_one_record_the_second_is_told(here, tmp_path, monkeypatch) -> None:
    from dataflow_assets.io.atomic import make_folder, write_atomically
    from dataflow_assets.io.objects.places import local_folder

    for number, refused in enumerate((False, True)):
        monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / f"cache{number}"))
        record = local_folder(f"s3://{here.name}/data") / "p" / "p_step1" / "_commits" / "p_b00000.json"
        make_folder(record.parent)
        if not refused:
            write_atomically(record, b"{}")
            continue
        with pytest.raises(PipelineBusy, match=r"s3://.*p_b00000.json was written by another process"):
            write_atomically(record, b"[]")
    assert here.read("data/p/p_step1/_commits/p_b00000.json") == b"{}"
