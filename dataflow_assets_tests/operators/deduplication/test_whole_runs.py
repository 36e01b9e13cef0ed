"""Whole runs: the same rows whatever the batches and workers, after SIGKILL, and with more input."""

import json
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from benchmarks.planted_duplicates import documents
from dataflow_assets_tests.crash.command import run
from dataflow_assets_tests.crash.compare import final_files
from dataflow_assets_tests.operators.deduplication.data_sets import outcomes, rejected_rows, sentences
from dataflow_assets_tests.operators.sample_tables import table
from dataflow_assets_tests.resume.runs import keys, made

KILLED = -9
TEXTS = list(documents(42, sentences(), seed=11))
STEPS = """steps:
  - {name: near, type: drop_near_duplicates, params: {unit: words}}
"""


def project(folder: Path, texts: Sequence[str] = TEXTS, batch_rows: int = 7) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"text": text}) for text in texts]
    (folder / "in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    head = f"name: four\nsource: {{path: in.jsonl}}\nbatch_rows: {batch_rows}\nroot: data\n"
    (folder / "four.yaml").write_text(head + STEPS)
    return folder


def rows_of(folder: Path, part: str = "") -> list[dict]:
    files = sorted((folder / "data" / "four" / "four_step1" / part).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.open(encoding="utf-8")]


def numbers(rows: Sequence[dict]) -> list[int]:
    return [int(row["row_id"].rsplit(":", 1)[1]) for row in rows]


def expected_repeats() -> list[int]:
    rows = rejected_rows(outcomes("drop_near_duplicates", table(text=TEXTS), len(TEXTS)))
    return [int(row["row_id"][1:]) for row in rows]


@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 2), (7, 1), (7, 4), (1000, 2)])
def test_batches_and_workers_make_no_difference(
    tmp_path: Path, instance: dg.DagsterInstance, batch_rows: int, workers: int
):
    folder = project(tmp_path / "project", batch_rows=batch_rows)
    made(folder, instance, workers=workers)
    first = min(numbers(rows_of(folder)))
    assert [number - first for number in numbers(rows_of(folder, "_rejected"))] == expected_repeats()
    assert len(expected_repeats()) > 3
    assert len(rows_of(folder)) + len(expected_repeats()) == len(TEXTS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("whole") / "project")
    assert run(folder, "--workers", "1").code == 0
    return folder


# Six batches, each with a record in step 0, then in the summaries, the verdicts, and the step.
@pytest.mark.parametrize("place", ["before_record:9", "before_record:21"])
def test_a_run_killed_in_any_pass_ends_as_if_it_had_not_been(tmp_path: Path, undisturbed: Path, place: str):
    folder = project(tmp_path / "project")
    assert run(folder, "--workers", "1", kill=place).code == KILLED
    assert run(folder, "--workers", "4").code == 0
    assert final_files(folder / "data") == final_files(undisturbed / "data")


def test_more_input_is_checked_against_old_rows_whose_summaries_stay(
    tmp_path: Path, instance: dg.DagsterInstance
):
    folder = project(tmp_path / "project", TEXTS[:21])
    made(folder, instance)
    project(folder, [*TEXTS[:21], TEXTS[0] + " End", *["New text " + text for text in TEXTS[21:27]]])
    again = made(folder, instance)
    assert again["near_state"] == again["near"] == keys(3)
    [late] = [row for row in rows_of(folder, "_rejected") if row["text"].endswith(" End")]
    assert late["duplicate_of"] == rows_of(folder)[0]["row_id"] and late["similarity"] > 0.9
