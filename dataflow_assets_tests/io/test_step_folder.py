"""What a step folder keeps of a batch, whatever is done with its files."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_assets.batch import Schema, table_of
from dataflow_assets.io.formats import Format
from dataflow_assets.io.step_folder import Origin, StepFolder
from dataflow_assets.operators.operator import Outcome

KEY = "x_b00000"
COLUMNS: Schema = {"row_id": "string", "text": "string"}
REJECTED: Schema = {**COLUMNS, "reject_reason": "string"}
FAILED: Schema = {**COLUMNS, "error_class": "string"}
ORIGIN = Origin("op", "1", "c", "f", 3, {"source": "h"}, 1.0, {"calls": 2, "cost": 0.25}, {"replaced": 7})


def one_row(schema: Schema) -> pa.Table:
    return table_of({name: ["x:1" if name == "row_id" else "v"] for name in schema}, schema)


OUTCOME = Outcome(one_row(COLUMNS), one_row(REJECTED), one_row(FAILED))


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_batch_in_another_format_keeps_all_that_its_record_says(tmp_path: Path, format: Format) -> None:
    before = StepFolder(tmp_path).commit(StepFolder(tmp_path).prepare(KEY, OUTCOME, ORIGIN))
    after = StepFolder(tmp_path, format).transcode(KEY, before)
    assert after == replace(before, format=format, files=after.files, generation=2)
    assert after.files.keys() == before.files.keys()


def files_in(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(str(path.relative_to(folder)) for path in files)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_a_kill_left_before_the_record_is_replaced_whole(tmp_path: Path, format: Format) -> None:
    killed = StepFolder(tmp_path)
    killed.commit(killed.prepare(KEY, OUTCOME, ORIGIN))
    killed.record_file(KEY).unlink()
    folder = StepFolder(tmp_path, format)
    folder.commit(folder.prepare(KEY, Outcome(OUTCOME.kept), ORIGIN))
    assert files_in(tmp_path) == [f"_commits/{KEY}.json", f"{KEY}.{format}"]


def test_files_of_a_batch_that_its_record_does_not_name_are_removed(tmp_path: Path) -> None:
    folder = StepFolder(tmp_path)
    folder.commit(folder.prepare(KEY, OUTCOME, ORIGIN))
    before = files_in(tmp_path)
    StepFolder(tmp_path, "parquet").file_of(KEY).write_bytes(b"a kill came before the record")
    StepFolder(tmp_path, "csv").file_of(KEY, "failed").write_bytes(b"as here")
    (tmp_path / f"{KEY}.txt").write_text("mine")
    assert StepFolder(tmp_path).remove_all_but({KEY}) == []
    assert files_in(tmp_path) == sorted([*before, f"{KEY}.txt"])


def test_a_batch_in_another_format_stays_until_it_is_rewritten(tmp_path: Path) -> None:
    folder = StepFolder(tmp_path)
    folder.commit(folder.prepare(KEY, OUTCOME, ORIGIN))
    before = files_in(tmp_path)
    StepFolder(tmp_path, "parquet").remove_all_but({KEY})
    assert files_in(tmp_path) == before
