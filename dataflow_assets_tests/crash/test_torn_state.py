"""Every state file cut in half or emptied: the next run recovers, or refuses and names the file."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.errors import CorruptFile
from dataflow_assets_tests.crash.command import environment, run
from dataflow_assets_tests.crash.compare import final_files
from dataflow_assets_tests.crash.project import STEP_NAMES
from dataflow_assets_tests.resume.runs import edit, made, work_in

CUTS = {"half": 0.5, "empty": 0.0}
STATE = (
    "manifest.json",
    "four_step0/in_b00001.jsonl",
    "four_step0/_rejected/in_b00002.jsonl",
    "four_step0/_commits/in_b00003.json",
    "four_step1/in_b00000.jsonl",
    "four_step2/_failed/in_b00001.jsonl",
    "four_step2/_commits/in_b00001.json",
    "four_step3/_rejected/in_b00000.jsonl",
    "four_step4/_state/summaries/in_b00002.parquet",
    "four_step4/_state/summaries/_commits/in_b00002.json",
    "four_step4/_state/verdicts/in_b00004.parquet",
    "four_step4/_state/verdicts/_commits/in_b00004.json",
    "four_step4/in_b00005.jsonl",
    "four_step4/_commits/in_b00005.json",
)


def cut(file: Path, share: float) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])


def corrupt(file: Path) -> None:
    """Other bytes of the same size and time, as a bad disk gives them."""
    import os

    status, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture
def done(project: Path, undisturbed: Path) -> Path:
    """The project with all its files, as if it had been copied here."""
    shutil.copytree(undisturbed, project / "data")
    return project


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("name", STATE)
def test_a_torn_file_is_made_again(
    done: Path, undisturbed: Path, instance: dg.DagsterInstance, name: str, how: str
) -> None:
    cut(done / "data" / "four" / name, CUTS[how])
    made(done, instance)
    assert final_files(done / "data") == final_files(undisturbed)


@pytest.mark.parametrize("how", CUTS)
def test_all_files_torn_at_once(
    done: Path, undisturbed: Path, instance: dg.DagsterInstance, how: str
) -> None:
    for file in [path for path in (done / "data").rglob("*") if path.is_file()]:
        cut(file, CUTS[how])
    made(done, instance)
    assert final_files(done / "data") == final_files(undisturbed)


@pytest.mark.parametrize("name", STATE)
def test_a_missing_file_is_made_again(
    done: Path, undisturbed: Path, instance: dg.DagsterInstance, name: str
) -> None:
    (done / "data" / "four" / name).unlink()
    made(done, instance)
    assert final_files(done / "data") == final_files(undisturbed)


def test_all_records_torn_is_like_a_first_run(
    done: Path, undisturbed: Path, instance: dg.DagsterInstance
) -> None:
    for file in (done / "data").rglob("_commits/*.json"):
        cut(file, 0.5)
    batches = made(done, instance)
    assert {asset: len(keys) for asset, keys in batches.items() if asset in STEP_NAMES} == dict.fromkeys(
        STEP_NAMES, 6
    )
    assert final_files(done / "data") == final_files(undisturbed)


def test_a_silently_changed_file_is_refused_by_name(done: Path, instance: dg.DagsterInstance) -> None:
    file = done / "data" / "four" / "four_step1" / "in_b00002.jsonl"
    corrupt(file)
    edit(done / "four.yaml", "columns: {chars: int64}", 'columns: {chars: int64}, version: "2"')
    with pytest.raises(CorruptFile, match=str(file)):
        made(done, instance)
    file.unlink()
    made(done, instance)
    assert work_in(done).step(work_in(done).pipeline.step("sized")).is_done("in_b00002")


def databases(folder: Path) -> Iterator[Path]:
    yield from sorted((folder / ".dagster_home").rglob("*.db"))


@pytest.mark.parametrize("how", CUTS)
def test_torn_dagster_storage_is_refused_by_name_or_recovered(
    done: Path, undisturbed: Path, how: str
) -> None:
    run(done)
    (done / "data" / "four" / "four_step4" / "in_b00005.jsonl").unlink()
    for database in databases(done):
        cut(database, CUTS[how])
    ended = run(done)
    assert ended.is_clean
    assert ended.code == 5 or (ended.code == 1 and ".dagster_home" in ended.err)
    shutil.rmtree(done / ".dagster_home")
    assert run(done, env=environment()).code == 5
    assert final_files(done / "data") == final_files(undisturbed)
