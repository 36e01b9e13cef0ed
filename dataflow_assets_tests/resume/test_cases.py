"""The shared cases 15, 16 and 20: torn step files, lying progress, changed input and parameters."""

import json
import shutil
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets_tests.crash.compare import final_files, records, rows, temporaries
from dataflow_assets_tests.crash.project import FUNCTIONS
from dataflow_assets_tests.resume.runs import edit, keys, made

CASES = Path(__file__).parents[1] / "cases"
ARITHMETIC = f"""name: four
prefix: run
root: data
source: {{path: input.jsonl}}
steps:
  - name: plus_one
    type: map_python
    params: {{function: "{FUNCTIONS}:plus_one", columns: {{a: int64}}}}
  - name: doubled
    type: map_python
    params: {{function: "{FUNCTIONS}:doubled", columns: {{b: int64}}}}
  - name: difference
    type: map_python
    params: {{function: "{FUNCTIONS}:difference", columns: {{c: int64}}}}
"""
SUFFIXED = f"""name: four
root: data
batch_rows: 1
source: {{path: in.jsonl}}
steps:
  - {{name: out, type: "{FUNCTIONS.rpartition(".")[0]}.suffix_operator:AddSuffix", params: {{suffix: "!"}}}}
"""


def case_15(folder: Path) -> Path:
    shutil.copy(CASES / "15_torn_step_file" / "input.jsonl", folder)
    (folder / "four.yaml").write_text(ARITHMETIC.replace("root:", "batch_rows: null\nroot:"))
    return folder


def without_ids(found: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "row_id"} for row in found]


def expected(*names: str) -> list[dict]:
    return [json.loads(line) for line in CASES.joinpath(*names).read_text(encoding="utf-8").splitlines()]


def step_file(folder: Path, step: int) -> list[dict]:
    text = (folder / "data" / "four" / f"run_step{step}.jsonl").read_text(encoding="utf-8")
    return without_ids([json.loads(line) for line in text.splitlines()])


@pytest.mark.parametrize("state", ["state_a", "state_b"])
def test_case_15_leftovers_are_replaced(tmp_path: Path, instance: dg.DagsterInstance, state: str) -> None:
    folder = case_15(tmp_path)
    made(folder, instance)
    root = folder / "data" / "four"
    first = (root / "run_step1.jsonl").read_bytes()
    shutil.copy(CASES / "15_torn_step_file" / state / "run_step2.jsonl", root)
    shutil.rmtree(root / "run_step2")
    assert set(made(folder, instance)) == {"doubled"}
    assert (root / "run_step1.jsonl").read_bytes() == first
    assert len(step_file(folder, 2)) == 10
    assert step_file(folder, 3) == expected("15_torn_step_file", "expected_step3.jsonl")
    assert temporaries(root) == []


@pytest.mark.parametrize("state", ["state_a", "state_b"])
def test_case_15_files_of_another_tool_are_never_input(
    tmp_path: Path, instance: dg.DagsterInstance, state: str
) -> None:
    folder = case_15(tmp_path)
    shutil.copytree(CASES / "15_torn_step_file" / state, folder / "data" / "four")
    made(folder, instance)
    assert step_file(folder, 3) == expected("15_torn_step_file", "expected_step3.jsonl")


def batches_of_two(folder: Path) -> Path:
    shutil.copy(CASES / "16_progress_marker" / "input.jsonl", folder)
    (folder / "four.yaml").write_text(ARITHMETIC.replace("root:", "batch_rows: 2\nroot:"))
    return folder


MARKERS = json.loads((CASES / "16_progress_marker" / "input.markers.json").read_bytes())


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: repr(marker["marker"]))
def test_case_16_progress_is_what_the_records_say(
    tmp_path: Path, instance: dg.DagsterInstance, marker: dict
) -> None:
    folder = batches_of_two(tmp_path)
    made(folder, instance)
    root, all_keys = folder / "data", keys(0, 1, 2, 3, 4, stem="input")
    whole = final_files(root)
    for step in (1, 2):
        there = keys(*marker["batches_on_disk"].get(f"step{step}", []), stem="input")
        for key in set(all_keys) - set(there):
            (root / "four" / f"run_step{step}" / f"{key}.jsonl").unlink()
    (root / "four" / "progress").write_text(marker["marker"])
    made(folder, instance)
    assert {path: data for path, data in final_files(root).items() if path != "four/progress"} == whole
    assert [row["id"] for row in rows(root, 2, prefix="run")] == list(range(1, 11))


@pytest.mark.parametrize("step", [1, 2])
def test_case_16_records_without_files_and_files_without_records(
    tmp_path: Path, instance: dg.DagsterInstance, step: int
) -> None:
    folder = batches_of_two(tmp_path)
    made(folder, instance)
    whole = final_files(folder / "data")
    root = folder / "data" / "four" / f"run_step{step}"
    (root / "input_b00003.jsonl").unlink()
    (root / "_commits" / "input_b00001.json").unlink()
    name = ["plus_one", "doubled"][step - 1]
    assert made(folder, instance)[name] == keys(1, 3, stem="input")
    assert final_files(folder / "data") == whole


def test_case_16_prefixes_do_not_share_progress(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    folder = batches_of_two(tmp_path)
    edit(folder / "four.yaml", "prefix: run", "prefix: clean")
    made(folder, instance)
    clean = {path: data for path, data in final_files(folder / "data").items() if "clean_" in path}
    edit(folder / "four.yaml", "prefix: clean", "prefix: qa")
    assert len(made(folder, instance)["difference"]) == 5
    assert len(rows(folder / "data", 3, prefix="qa")) == 10
    after = final_files(folder / "data")
    assert {path: after.get(path) for path in clean} == clean


def case_20(folder: Path, version: str = "input_v1.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    shutil.copy(CASES / "20_input_or_config_changed" / version, folder / "in.jsonl")
    (folder / "four.yaml").write_text(SUFFIXED)
    return folder


def out(folder: Path) -> list[dict]:
    return without_ids(rows(folder / "data", 1))


def test_case_20_changed_input_then_changed_parameter(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    made(case_20(tmp_path), instance)
    case_20(tmp_path, "input_v2.jsonl")
    assert made(tmp_path, instance)["out"] == keys(2, 3)
    assert out(tmp_path) == expected("20_input_or_config_changed", "expected_v2.jsonl")
    edit(tmp_path / "four.yaml", 'suffix: "!"', 'suffix: "?"')
    assert made(tmp_path, instance) == {"out": keys(0, 1, 2, 3)}
    assert out(tmp_path) == expected("20_input_or_config_changed", "expected_v2_param_q.jsonl")


def test_case_20_swapped_rows_of_equal_size(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    made(case_20(tmp_path), instance)
    lines = (tmp_path / "in.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "in.jsonl").write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n", encoding="utf-8")
    assert made(tmp_path, instance)["out"] == keys(0, 1)
    assert [row["id"] for row in out(tmp_path)] == [2, 1, 3]


def test_case_20_the_same_text_in_another_place_makes_nothing(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    made(case_20(tmp_path / "here"), instance)
    before = records(tmp_path / "here" / "data")
    shutil.move(tmp_path / "here", tmp_path / "there")
    with dg.DagsterInstance.ephemeral() as other:
        assert made(tmp_path / "there", other) == {}
    assert records(tmp_path / "there" / "data") == before
