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
