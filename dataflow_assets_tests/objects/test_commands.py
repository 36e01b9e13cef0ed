"""What people do with a pipeline, where its root is on an object store."""

import shutil

import dagster as dg
import pyarrow as pa

from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets_tests.crash.compare import rows
from dataflow_assets_tests.objects.bucket import write_s3_project


def test_all_commands_work_on_a_machine_that_has_no_copies(here, command_here, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "project"
    write_s3_project(folder, here)
    made = command_here(folder, "run", "four.yaml")
    assert made.code == 5
    assert f"s3://{here.name}/data/four" in made.out
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "other"))
    assert "four: done, 60 rows read" in command_here(folder, "status", "four.yaml").out
    assert "chars: 17" in command_here(folder, "sample", "four.yaml", "unique").out
    assert command_here(folder, "export", "four.yaml", "--to", "out.jsonl", "--allow-partial").code == 0
    assert len((folder / "out.jsonl").read_bytes().splitlines()) == 36
    assert "I cannot do 13" in command_here(folder, "failed", "four.yaml").out
    assert "in.jsonl, line 3" in command_here(folder, "trace", "four.yaml", "in:3").out
    assert command_here(folder, "report", "four.yaml", "--to", "r.html").code == 0
    assert command_here(folder, "retry-failed", "four.yaml").code == 5
    assert command_here(folder, "pause", "four.yaml").code == 0
    assert command_here(folder, "run", "four.yaml").code == 3
    assert "nothing to do" in command_here(folder, "resume", "four.yaml").out


def test_a_value_that_is_put_back_is_there_for_another_machine(here, command_here, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    write_s3_project(folder, here)
    command_here(folder, "run", "four.yaml")
    command_here(folder, "failed", "four.yaml", "--to", "rows.jsonl")
    file = folder / "rows.jsonl"
    file.write_text(file.read_text().replace('"n":13', '"n":99'))
    put = command_here(folder, "put-back", "four.yaml", "--step", "sized", "rows.jsonl")
    assert put.code == 0, put
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "other"))
    assert "nothing to do" in command_here(folder, "run", "four.yaml").out
    data = here.downloaded(tmp_path / "downloaded") / "data"
    assert 99 in [row["n"] for row in rows(data, 2)]
    assert not [name for name in here.names() if name.endswith((".tmp", ".next"))]


def test_a_root_that_was_copied_from_a_disk_is_valid(here, command_here, tmp_path) -> None:
    folder = tmp_path / "project"
    write_s3_project(folder, here)
    text = (folder / "four.yaml").read_text()
    (folder / "four.yaml").write_text(text.replace(f"s3://{here.name}/data", "data"))
    command_here(folder, "run", "four.yaml")
    for path in (folder / "data").rglob("*"):
        if path.is_file() and path.name != ".lock":
            here.client().upload_file(str(path), here.name, str(path.relative_to(folder)))
    (folder / "four.yaml").write_text(text)
    assert "nothing to do" in command_here(folder, "run", "four.yaml").out


def test_a_batch_whose_rows_were_changed_in_the_store_is_made_again(here, command_here, tmp_path) -> None:
    folder = tmp_path / "project"
    write_s3_project(folder, here)
    command_here(folder, "run", "four.yaml")
    name = "data/four/four_step3/in_b00002.jsonl"
    whole = here.read(name)
    here.client().put_object(Bucket=here.name, Key=name, Body=whole[:-20])
    assert "long_enough: 1/1 batches" in command_here(folder, "run", "four.yaml").out.replace("6/6", "1/1")
    assert here.read(name) == whole


def test_worker_processes_put_their_batches(here, command_here, tmp_path, undisturbed_objects) -> None:
    folder = tmp_path / "project"
    write_s3_project(folder, here, workers=2)
    assert command_here(folder, "run", "four.yaml").code == 5
    assert here.content(tmp_path / "downloaded") == undisturbed_objects


def test_the_source_is_cut_otherwise_and_what_is_no_more_is_removed(here, command_here, tmp_path) -> None:
    folder = tmp_path / "project"
    write_s3_project(folder, here)
    command_here(folder, "run", "four.yaml")
    file = folder / "four.yaml"
    file.write_text(file.read_text().replace("batch_rows: 10", "batch_rows: 30"))
    shutil.rmtree(tmp_path / "cache")
    assert command_here(folder, "run", "four.yaml").code == 5
    names = [name for name in here.names() if "in_b0000" in name]
    assert {name.rpartition("/")[2].split(".")[0] for name in names} == {"in_b00000", "in_b00001"}


def test_a_pipeline_in_memory_goes_its_way(command_here, project, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "cache"))
    assert command_here(project, "run", "four.yaml", "--root", "memory://rows").code == 5
    assert "nothing to do" in command_here(project, "run", "four.yaml", "--root", "memory://rows").out


def test_an_asset_of_ones_own_is_kept_there_too(here, tmp_path, monkeypatch) -> None:
    @dg.asset(io_manager_key="files")
    def mine() -> pa.Table:
        return pa.table({"a": [1, 2]})

    @dg.asset(io_manager_key="files")
    def later(mine: pa.Table) -> list:
        return [{"sum": sum(mine["a"].to_pylist())}]

    resources = {"files": StepFilesIOManager(root=f"s3://{here.name}/own")}
    assert dg.materialize([mine, later], resources=resources).success
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "other"))
    assert dg.materialize([mine, later], selection=[later], resources=resources).success
    assert here.read("own/later/all.jsonl") == b'{"sum":3}\n'
