"""Batches that worker processes make as a whole: equal to those made here, and safe from rows that kill."""

import json
import os
import signal
from pathlib import Path

import pytest

from dataflow_assets.control import StopFlag
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import Rows, pipeline, rows

HERE = "dataflow_assets_tests.test_whole_batches"
TEXTS = [f"Row  {number}" for number in range(12)]
LOWER = {"name": "lower", "type": "lowercase"}
UNIQUE = {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}}
ALL = {"lower", "asked", "tidy", "unique_state"}


def who_does_it(row: dict) -> dict:
    """A row function that says which process calls it."""
    return {"pid": os.getpid()}


def kill_on_seven(row: dict) -> dict:
    """A row function that ends its process at one row."""
    if row["text"].endswith("7"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"pid": os.getpid()}


def fail_loudly(row: dict) -> dict:
    """A row function whose row fails."""
    raise ValueError("no")


def step(function: str, **options: object) -> dict:
    params = {"function": f"{HERE}:{function}", "columns": {"pid": "int64"}}
    return {"name": "asked", "type": "map_python", "params": params, **options}


TIDY = {"name": "tidy", "type": "normalize_whitespace"}


def read(folder: Path, *steps: dict, **fields: object) -> PipelineWork:
    folder.mkdir(exist_ok=True)
    source = folder / "in.jsonl"
    source.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    work = PipelineWork(pipeline(folder, source, *steps, batch_rows=3, **fields))
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    return work


def made(work: PipelineWork, name: str = "lower", selected: set[str] = ALL) -> list[bool]:
    """Runs a step's turn; for each batch whether it is new to that step."""
    stream = work.stream(work.pipeline.step(name), work.known_manifest().batches, selected)
    return [not committed.reused for committed in stream.commit_all(StopFlag())]


def pids(found: Rows) -> set[object]:
    return {row["pid"] for row in found}


@pytest.mark.parametrize("name", ["lower", "tidy"])
def test_rows_and_hashes_are_those_of_one_process(tmp_path: Path, name: str) -> None:
    here = read(tmp_path / "here", LOWER, step("fail_loudly"), TIDY, workers=1)
    there = read(tmp_path / "there", LOWER, step("fail_loudly"), TIDY, workers=2)
    for work in (here, there):
        made(work)
    assert rows(there, name) == rows(here, name)
    assert rows(there, "asked", "failed") == rows(here, "asked", "failed")
    records = [
        [work.folder_of(name).record(key) for key in work.known_manifest().batches] for work in (here, there)
    ]
    assert [r and r.fingerprint for r in records[0]] == [r and r.fingerprint for r in records[1]]


def test_all_steps_of_a_batch_are_done_in_the_processes(tmp_path: Path) -> None:
    work = read(tmp_path, LOWER, step("who_does_it"), TIDY, UNIQUE, workers=2)
    made(work)
    assert os.getpid() not in pids(rows(work, "tidy"))
    assert len(rows(work, "tidy")) == len(TEXTS)
    assert work.state(work.pipeline.step("unique")).work.summaries.record("in_b00003") is not None


def test_a_batch_made_in_a_process_is_new_to_its_step_once(tmp_path: Path) -> None:
    work = read(tmp_path, LOWER, step("who_does_it"), TIDY, workers=2)
    assert made(work) == [True] * 4
    assert made(work, "tidy") == [True] * 4
    assert made(work, "tidy") == [False] * 4


def test_a_row_that_kills_a_process_fails_alone_and_the_rest_is_made(tmp_path: Path) -> None:
    work = read(tmp_path, LOWER, step("kill_on_seven"), TIDY, workers=2)
    made(work)
    assert [row["text"] for row in rows(work, "tidy")] == [f"row {n}" for n in range(12) if n != 7]
    failed = rows(work, "asked", "failed")
    assert [(row["text"], row["error_class"]) for row in failed] == [("row  7", "WorkerDied")]
    assert os.getpid() not in pids(rows(work, "tidy"))


def test_what_is_there_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = read(tmp_path, LOWER, step("who_does_it"), TIDY, workers=2)
    made(work)
    monkeypatch.setattr(
        "dataflow_assets.engines.worker_pool.new_executor",
        lambda workers: pytest.fail("a process was started"),
    )
    assert made(work, selected=ALL - {"unique_state"}) == [False] * 4


@pytest.mark.parametrize("options", [{"chunk_rows": 2}, {"workers": 1}])
def test_a_step_that_says_how_it_is_done_is_done_so(tmp_path: Path, options: dict) -> None:
    work = read(tmp_path, LOWER, step("who_does_it", **options), TIDY, workers=2)
    made(work)
    assert (os.getpid() in pids(rows(work, "tidy"))) == ("workers" in options)


def test_cheap_work_stays_here_where_nobody_asked_for_workers(tmp_path: Path) -> None:
    work = read(tmp_path, LOWER, step("who_does_it"), TIDY)
    made(work)
    assert pids(rows(work, "tidy")) == {os.getpid()}
