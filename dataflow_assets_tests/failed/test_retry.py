"""Retrying: only failed rows are done again, and the files are those of a run that never failed."""

import json
import shutil
from pathlib import Path

import pytest

from dataflow_assets.errors import CheckFailed
from dataflow_assets.operators.tables.python_function import MapPython
from dataflow_assets_tests.failed.project import (
    ANSWERED,
    DROPPED,
    FILE,
    IN_THREE,
    LOWER,
    UNIQUE,
    Queue,
    write_project,
)
from dataflow_assets_tests.resume.runs import edit

CASE = Path(__file__).parents[1] / "cases" / "17_failed_rows_are_not_done"
FORK = (
    ANSWERED,
    LOWER.replace("q}}", "q}, depends_on: [answered]}"),
    LOWER.replace("lower,", "other,").replace("q}}", "answer}, depends_on: [answered]}"),
    "{name: both, type: rename_columns, params: {columns: {x: y}}, depends_on: [lower, other]}",
)
PIPELINES = {
    "rows": (ANSWERED, LOWER),
    "a decision over all rows after it": (ANSWERED, UNIQUE, LOWER),
    "rows that are dropped": (DROPPED, LOWER),
    "split rows": (LOWER, IN_THREE, ANSWERED),
    "a fork and a join": FORK,
}
BATCHES = "batch_rows: 4"
RUNS = [
    *((name, BATCHES) for name in PIPELINES),
    ("split rows", "batch_rows: null"),
    ("rows that are dropped", "batch_rows: 5\nformat: parquet"),
    ("rows", "batch_rows: 5\nworkers: 2"),
]


def test_case_17_failed_rows_are_not_done(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, sick=[2, 5])
    shutil.copy(CASE / "input.jsonl", ill.folder / "in.jsonl")
    ill.run()
    assert [row["id"] for row in ill.stored(1)] == [1, 3, 4, 6]
    assert [(row["q"], row["attempts"]) for row in ill.stored(1, "_failed")] == [("问2", 1), ("问5", 1)]
    (ill.folder / "sick").unlink()
    ill.calls()
    ill.retry()
    assert ill.calls() == {2: 1, 5: 1}
    final = [{name: row[name] for name in ("id", "q", "answer")} for row in ill.stored(1)]
    assert final == [json.loads(line) for line in (CASE / "expected_final.jsonl").open(encoding="utf-8")]
    ill.run()
    assert ill.calls() == {}


@pytest.mark.parametrize(("name", "head"), RUNS)
def test_the_files_are_those_of_a_run_that_never_failed(queue: Queue, name: str, head: str) -> None:
    well = queue.at("well", *PIPELINES[name], head=head)
    ill = queue.at("ill", *PIPELINES[name], sick=[0, 3, 6, 9, 11], head=head)
    assert ill.files() != well.files()
    for still_sick in ("3", ""):
        (ill.folder / "sick").write_text(still_sick)
        ill.retry()
    assert ill.files() == well.files()


def test_only_failed_rows_are_done_again_and_only_their_dependents_redone(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5])
    (ill.folder / "sick").unlink()
    (retried,) = ill.retry()
    assert (retried.tried, retried.done, retried.failed, retried.batches) == (1, 1, 0, 1)
    assert ill.calls() == {5: 1}
    assert ill.generations(1) == ill.generations(2) == [1, 2, 1]


def test_after_a_decision_over_all_rows_only_changed_batches_are_redone(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, UNIQUE, LOWER, sick=[0])
    assert [row["id"] for row in ill.stored(3)] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    (ill.folder / "sick").unlink()
    ill.retry()
    assert [row["id"] for row in ill.stored(3)] == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert ill.generations(3) == [2, 1, 2]


def test_rows_that_fail_again_redo_nothing_and_count_their_attempts(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5])
    ill.retry()
    assert [row["attempts"] for row in ill.stored(1, "_failed")] == [2]
    assert ill.generations(1) == [1, 2, 1]
    assert ill.generations(2) == [1, 1, 1]


@pytest.mark.parametrize(
    ("which", "tried"),
    [
        ({"error_classes": ["KeyError"]}, []),
        ({"steps": ["lower"]}, []),
        ({"steps": ["answered"], "error_classes": ["KeyError", "ValueError"]}, [5]),
        ({"max_attempts": 1}, []),
        ({"max_attempts": 1, "parked": "in"}, [5]),
        ({"max_attempts": 2}, [5]),
    ],
)
def test_only_the_rows_that_are_meant_are_tried(queue: Queue, which: dict, tried: list[int]) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5])
    ill.retry(**which)
    assert list(ill.calls()) == tried


def test_a_changed_step_and_those_below_are_left_to_run(queue: Queue) -> None:
    ill = queue.at("ill", LOWER, ANSWERED, UNIQUE, sick=[5])
    edit(ill.folder / FILE, "columns: {answer: string}", 'columns: {answer: string}, version: "2"')
    (retried,) = ill.retry()
    assert retried.changed and retried.stale == ["in_b00001"]
    assert ill.calls() == {}
    assert ill.generations(3) == [1, 1, 1]


def test_a_source_that_changed_is_not_read(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5])
    write_project(ill.folder, ANSWERED, LOWER, rows=30)
    ill.retry()
    assert len(ill.stored(2)) == 12
    ill.run()
    assert len(ill.stored(2)) == 30


def test_a_step_whose_rows_change_above_is_redone_as_a_whole(queue: Queue) -> None:
    second = ANSWERED.replace("name: answered", "name: second")
    ill = queue.at("ill", ANSWERED, second, sick=[5])
    (ill.folder / "data" / "queue" / "queue_step2" / "in_b00001.jsonl").unlink()
    (ill.folder / "sick").write_text("5 6")
    ill.run()
    (ill.folder / "sick").unlink()
    ill.calls()
    first, then = ill.retry()
    assert (first.done, then.stale, then.changed) == (1, ["in_b00001"], False)
    assert ill.calls() == {4: 1, 5: 2, 6: 1, 7: 1}


def test_dagster_hears_of_each_batch_that_was_retried(queue: Queue) -> None:
    ill = queue.at("ill", ANSWERED, LOWER, sick=[5, 11])
    (ill.folder / "sick").write_text("5")
    before = ill.events("answered")
    ill.retry()
    assert ill.events("answered") == [*before, "in_b00001", "in_b00002"]


GATE = "checks: [{max_failed_share: 0, blocking: true}]"


def test_the_numbers_of_an_operator_are_of_the_whole_batch_after_a_retry(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MapPython, "counts", lambda self, kept: {"kept": kept.num_rows})
    ill = queue.of("counted", ANSWERED, sick=[2])
    ill.run()
    (ill.folder / "sick").unlink()
    ill.retry()
    record = ill.work.folder_of("answered").record(ill.work.known_manifest().batches[0])
    assert record is not None
    assert record.counts == {"kept": record.rows_out}


def test_a_retry_opens_a_gate_that_failed_rows_had_shut(queue: Queue) -> None:
    ill = queue.of("ill", ANSWERED[:-1] + f", {GATE}}}", LOWER, sick=[5])
    with pytest.raises(CheckFailed):
        ill.run()
    with pytest.raises(CheckFailed):
        ill.retry()
    (ill.folder / "sick").unlink()
    ill.retry()
    assert len(ill.stored(2)) == 12


def test_nothing_is_tried_below_a_gate_that_is_shut(queue: Queue) -> None:
    second = ANSWERED.replace("name: answered", "name: second")
    ill = queue.at("ill", LOWER, second, sick=[5])
    text = (ill.folder / FILE).read_text()
    gate = (
        "checks: [{max_null_rate: 0, column: q, blocking: true}, {max_mean: 1, column: id, blocking: true}]"
    )
    (ill.folder / FILE).write_text(text.replace("column: q}}", f"column: q}}, {gate}}}"))
    with pytest.raises(CheckFailed):
        ill.retry()
    assert ill.calls() == {}
