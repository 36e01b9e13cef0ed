"""A step that is taken out: the others are as in a fresh run, and what it left is named, not removed."""

from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.status import status_of
from dataflow_assets_tests.crash.compare import final_files, records
from dataflow_assets_tests.crash.project import STEP_NAMES
from dataflow_assets_tests.resume.runs import edit, fresh_root, keys, made, work_in

ALL = keys(0, 1, 2, 3, 4, 5)
LAST_STEP = "  - {name: unique, type: drop_duplicates, params: {columns: [text]}}\n"
LOWER = "  - {name: lower, type: lowercase, params: {column: text}}\n"


def take_out(project: Path, step: str) -> None:
    file = project / "four.yaml"
    lines = [line for line in file.read_text().splitlines() if f"name: {step}," not in line]
    file.write_text("\n".join(lines) + "\n")


def leftovers(project: Path, **changes: object) -> list[str]:
    return status_of(work_in(project, **changes)).leftover_steps


def test_the_last_step_taken_out_makes_nothing_and_leaves_its_folder(
    project: Path, instance: dg.DagsterInstance
) -> None:
    made(project, instance)
    before = records(project / "data")
    take_out(project, "unique")
    assert made(project, instance) == {}
    assert records(project / "data") == before
    assert leftovers(project) == ["four_step4"]
    assert status_of(work_in(project)).state == "done"


def test_a_step_put_in_again_is_done_and_no_leftover(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    take_out(project, "unique")
    made(project, instance)
    with (project / "four.yaml").open("a") as file:
        file.write(LAST_STEP)
    assert leftovers(project) == []
    assert made(project, instance) == {}


@pytest.mark.parametrize("step", STEP_NAMES)
def test_after_any_step_is_taken_out_the_others_are_as_in_a_fresh_run(
    project: Path, instance: dg.DagsterInstance, step: str
) -> None:
    made(project, instance)
    take_out(project, step)
    made(project, instance)
    files, fresh = final_files(project / "data"), final_files(fresh_root(project, instance))
    assert {path: files.get(path) for path in fresh} == fresh
    others = {path.split("/")[1] for path in files.keys() - fresh.keys() if "/_state/" not in path}
    assert others == {"four_step4"} and leftovers(project) == ["four_step4"]


def test_before_the_run_steps_of_other_numbers_are_stale(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    take_out(project, "sized")
    steps = status_of(work_in(project)).steps
    assert [(step.name, step.batches_done, step.stale) for step in steps] == [
        ("lower", 6, False),
        ("long_enough", 0, True),
        ("unique", 0, True),
    ]


def test_the_folder_of_an_equal_step_is_taken_over(project: Path, instance: dg.DagsterInstance) -> None:
    edit(project / "four.yaml", LOWER, LOWER + LOWER.replace("name: lower", "name: again"))
    made(project, instance)
    take_out(project, "lower")
    assert made(project, instance) == {"sized": ALL, "long_enough": ALL, "unique_state": ALL, "unique": ALL}
    assert leftovers(project) == ["four_step5"]


def test_a_renamed_step_keeps_its_batches(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "four.yaml", "name: lower", "name: lowered")
    assert made(project, instance) == {}
    assert leftovers(project) == []


def test_the_file_of_a_whole_step_is_a_leftover_too(project: Path, instance: dg.DagsterInstance) -> None:
    edit(project / "four.yaml", "batch_rows: 10\n", "batch_rows: null\n")
    made(project, instance)
    take_out(project, "unique")
    assert leftovers(project) == ["four_step4", "four_step4.jsonl"]


def test_files_that_are_not_named_like_a_step_are_no_leftovers(project: Path) -> None:
    for name in ("four_step4_notes", "four_step04", "four_stepx", "run_step9", "four_step9.txt", "step7"):
        (project / "data" / "four" / name).mkdir(parents=True)
    assert leftovers(project) == []


def test_leftovers_come_in_order_of_their_numbers(project: Path) -> None:
    for number in (12, 4, 5, 100):
        (project / "data" / "four" / f"four_step{number}").mkdir(parents=True)
    assert leftovers(project) == ["four_step5", "four_step12", "four_step100"]


def test_the_folder_of_another_prefix_is_no_leftover(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "four.yaml", "root: data", "root: data\nprefix: run")
    take_out(project, "unique")
    assert leftovers(project) == []
