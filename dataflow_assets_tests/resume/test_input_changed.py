"""A run after the input changed gives what a fresh run gives, and redoes only the batches that changed."""

import os
from pathlib import Path

import dagster as dg

from dataflow_assets_tests.crash.compare import final_files
from dataflow_assets_tests.crash.project import row, write_project, write_rows
from dataflow_assets_tests.resume.runs import edit, fresh_root, keys, made

ROW_STEPS = ("source", "lower", "sized", "long_enough")


def only(batches: dict[str, list[str]]) -> set[str]:
    """The batches that any row-scope asset made."""
    return {key for asset in ROW_STEPS for key in batches.get(asset, [])}


def test_one_changed_row_redoes_its_batch(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "in.jsonl", "Row 22<", "Row 22 anew<")
    assert only(made(project, instance)) == set(keys(2))
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_a_changed_row_redoes_only_verdicts_that_changed(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "in.jsonl", "Row 22<", "Row 22 anew<")
    assert made(project, instance)["unique"] == keys(2)


def test_a_changed_duplicate_changes_the_other_batch(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "in.jsonl", '{"n": 4, "text": "<b>Row 4<', '{"n": 4, "text": "<b>Row four<')
    now = made(project, instance)
    assert only(now) == set(keys(0))
    assert now["unique"] == keys(0, 4)
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_swapped_rows_are_a_change(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    lines = (project / "in.jsonl").read_text().splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    (project / "in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert only(made(project, instance)) == set(keys(0))
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_appended_rows_add_batches(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    write_rows(project / "in.jsonl", [row(number) for number in range(75)])
    assert only(made(project, instance)) == set(keys(6, 7))
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_a_shorter_file_loses_batches(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    write_rows(project / "in.jsonl", [row(number) for number in range(35)])
    assert only(made(project, instance)) == set(keys(3))
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_a_mended_line_redoes_its_batch_and_those_after(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "in.jsonl", '{"n": 30, "te\n', "")
    made(project, instance)
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_touched_time_makes_nothing(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    os.utime(project / "in.jsonl", (1, 1))
    assert made(project, instance) == {}


def test_an_equal_copy_in_its_place_makes_nothing(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    data = (project / "in.jsonl").read_bytes()
    (project / "in.jsonl").unlink()
    (project / "in.jsonl").write_bytes(data)
    assert made(project, instance) == {}


def folder_project(folder: Path, *names: str) -> Path:
    """A project that reads a folder with these files of 12 rows each."""
    write_project(folder)
    edit(folder / "four.yaml", "path: in.jsonl", "path: inbox")
    (folder / "inbox").mkdir()
    for name in names:
        add_file(folder, name)
    return folder


def add_file(folder: Path, name: str) -> None:
    start = 12 * (ord(name[0]) - ord("a"))
    write_rows(folder / "inbox" / name, [row(start + number) for number in range(12)], None)


def test_a_file_that_sorts_after_adds_batches(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = folder_project(tmp_path, "b.jsonl", "c.jsonl")
    made(folder, instance)
    add_file(folder, "d.jsonl")
    assert only(made(folder, instance)) == set(keys(0, 1, stem="d"))
    assert final_files(folder / "data") == final_files(fresh_root(folder, instance))


def test_a_file_that_sorts_before_adds_batches(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = folder_project(tmp_path, "b.jsonl", "c.jsonl")
    made(folder, instance)
    add_file(folder, "a.jsonl")
    assert only(made(folder, instance)) == set(keys(0, 1, stem="a"))
    assert final_files(folder / "data") == final_files(fresh_root(folder, instance))


def test_a_removed_file_takes_its_batches_away(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = folder_project(tmp_path, "a.jsonl", "b.jsonl", "e.jsonl")
    made(folder, instance)
    (folder / "inbox" / "b.jsonl").unlink()
    assert only(made(folder, instance)) == set()
    assert final_files(folder / "data") == final_files(fresh_root(folder, instance))
    assert instance.get_dynamic_partitions("four") == [*keys(0, 1, stem="a"), *keys(0, 1, stem="e")]


def test_a_file_with_a_new_column_widens_all_batches(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = folder_project(tmp_path, "a.jsonl", "b.jsonl")
    made(folder, instance)
    write_rows(folder / "inbox" / "c.jsonl", [{**row(1), "lang": "zh"}], None)
    made(folder, instance)
    assert final_files(folder / "data") == final_files(fresh_root(folder, instance))


def test_a_file_with_another_type_goes_and_comes(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = folder_project(tmp_path, "a.jsonl", "b.jsonl")
    made(folder, instance)
    without = final_files(folder / "data")
    (folder / "inbox" / "c.jsonl").write_text('{"n": "no number", "text": "a text that is long enough"}\n')
    made(folder, instance)
    assert final_files(folder / "data") == final_files(fresh_root(folder, instance))
    (folder / "inbox" / "c.jsonl").unlink()
    made(folder, instance)
    assert final_files(folder / "data") == without


def test_columns_in_another_order_reach_all_batches(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = folder_project(tmp_path, "a.jsonl", "b.jsonl")
    made(folder, instance)
    turned = [dict(reversed(row(number).items())) for number in range(12)]
    write_rows(folder / "inbox" / "a.jsonl", turned, None)
    made(folder, instance)
    assert final_files(folder / "data") == final_files(fresh_root(folder, instance))


def test_a_source_that_covers_the_root_does_not_read_it(project: Path, instance: dg.DagsterInstance) -> None:
    edit(project / "four.yaml", "path: in.jsonl", "path: .")
    made(project, instance)
    assert made(project, instance) == {}
    edit(project / "four.yaml", "batch_rows: 10\n", "batch_rows: null\n")
    assert made(project, instance)["source"] == ["all"]
    assert made(project, instance) == {}


def test_a_file_of_the_same_name_that_sorts_before_renames_nothing(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    folder = folder_project(tmp_path)
    for name in ("b", "a"):
        (folder / "inbox" / name).mkdir()
    write_rows(folder / "inbox/b/x.jsonl", [row(number) for number in range(12)], None)
    made(folder, instance)
    before = (folder / "data/four/four_step1/x_b00000.jsonl").read_bytes()
    write_rows(folder / "inbox/a/x.jsonl", [row(number) for number in range(50, 62)], None)
    assert not set(keys(0, 1, stem="x")) & only(made(folder, instance))
    assert (folder / "data/four/four_step1/x_b00000.jsonl").read_bytes() == before
    assert made(folder, instance) == {}
