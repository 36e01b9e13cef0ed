"""A run with other settings gives what a fresh run with them gives, and redoes only what they touch."""

import shutil
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets_tests.crash.compare import final_files, records, temporaries
from dataflow_assets_tests.crash.project import FUNCTIONS
from dataflow_assets_tests.resume.runs import edit, fresh_root, keys, made

ALL = keys(0, 1, 2, 3, 4, 5)


def test_nothing_changed_makes_nothing(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    before = records(project / "data")
    assert made(project, instance) == {}
    assert records(project / "data") == before


@pytest.mark.parametrize("batch_rows", [7, 25])
def test_another_batch_size(project: Path, instance: dg.DagsterInstance, batch_rows: int) -> None:
    made(project, instance)
    made(project, instance, batch_rows=batch_rows)
    fresh = fresh_root(project, instance, batch_rows=batch_rows)
    assert final_files(project / "data") == final_files(fresh)


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_another_format_is_rewritten_and_nothing_computed(
    project: Path, instance: dg.DagsterInstance, format: str
) -> None:
    made(project, instance)
    assert made(project, instance, format=format) == {}
    assert final_files(project / "data") == final_files(fresh_root(project, instance, format=format))


def test_back_to_the_first_format(project: Path, instance: dg.DagsterInstance, undisturbed: Path) -> None:
    for format in ("jsonl", "parquet", "jsonl"):
        made(project, instance, format=format)
    assert final_files(project / "data") == final_files(undisturbed)


def test_another_worker_count_makes_nothing(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    assert made(project, instance, workers=2) == {}


def test_a_changed_parameter_redoes_its_step_and_those_below(
    project: Path, instance: dg.DagsterInstance
) -> None:
    made(project, instance)
    edit(project / "four.yaml", "min_chars: 14", "min_chars: 18")
    now = made(project, instance)
    assert "lower" not in now and "sized" not in now and "source" not in now
    assert now["long_enough"] == ALL
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_a_changed_parameter_that_changes_no_row_stops_there(
    project: Path, instance: dg.DagsterInstance
) -> None:
    made(project, instance)
    edit(project / "four.yaml", "min_chars: 14", "min_chars: 15")
    assert made(project, instance) == {"long_enough": ALL}


def test_another_function_redoes_its_step(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "four.yaml", f'"{FUNCTIONS}:sized"', f'"{FUNCTIONS}:always_one"')
    assert made(project, instance)["sized"] == ALL
    assert final_files(project / "data") == final_files(fresh_root(project, instance))


def test_two_pipelines_in_one_root(project: Path, instance: dg.DagsterInstance, undisturbed: Path) -> None:
    made(project, instance)
    edit(project / "four.yaml", "name: four", "name: four2")
    made(project, instance)
    edit(project / "four.yaml", "name: four2", "name: four")
    assert made(project, instance) == {}
    assert final_files(project / "data" / "four") == final_files(undisturbed / "four")


def test_a_prefix_that_begins_like_another(project: Path, instance: dg.DagsterInstance) -> None:
    edit(project / "four.yaml", "root: data", "root: data\nprefix: run")
    made(project, instance)
    steps = {path: data for path, data in final_files(project / "data").items() if "/run_step" in path}
    edit(project / "four.yaml", "prefix: run", "prefix: run_step1")
    assert made(project, instance)["lower"] == ALL
    after = final_files(project / "data")
    assert {path: after.get(path) for path in steps} == steps
    assert sorted(after) == sorted({*final_files(fresh_root(project, instance)), *steps})


def test_a_step_taken_out_and_put_in_again(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    whole = (project / "four.yaml").read_text()
    lines = [line for line in whole.splitlines() if "filter_length" not in line]
    (project / "four.yaml").write_text("\n".join(lines))
    made(project, instance)
    (project / "four.yaml").write_text(whole)
    made(project, instance)
    files = final_files(project / "data")
    files = {path: data for path, data in files.items() if "four_step3/_state/" not in path}
    assert files == final_files(fresh_root(project, instance))


def test_one_file_a_step_after_batches(project: Path, instance: dg.DagsterInstance) -> None:
    made(project, instance)
    edit(project / "four.yaml", "batch_rows: 10\n", "batch_rows: null\n")
    made(project, instance)
    files, fresh = final_files(project / "data"), final_files(fresh_root(project, instance))
    assert {path: files.get(path) for path in fresh} == fresh
    assert {Path(path).name for path in files.keys() - fresh.keys()} <= {".huggingface.yaml"}
    assert temporaries(project / "data") == []


def test_another_working_folder_makes_nothing(
    project: Path, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(project, instance)
    monkeypatch.chdir(tmp_path)
    assert made(project, instance) == {}


def test_a_copied_root_makes_nothing(project: Path, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    made(project, instance)
    shutil.copytree(project, tmp_path / "copy")
    with dg.DagsterInstance.ephemeral() as other:
        assert made(tmp_path / "copy", other) == {}
