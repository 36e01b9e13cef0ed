"""An estimate reads the source as a run would, and leaves nothing behind but answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_assets.errors import RunError, SourceError
from dataflow_assets.estimate import Estimate, estimate
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork

TOLD: list[str] = []


class Witness:
    """A plugin that notes what it is told."""

    def on_pipeline_start(self, event: object) -> None:
        TOLD.append("begun")


def estimated(
    folder: Path,
    rows: Mapping[str, Sequence[object]],
    params: Mapping[str, object] = {},
    **more: object,
) -> Estimate:
    """The estimate for a Parquet file of these rows, by its first two."""
    pq.write_table(pa.table(dict(rows)), folder / "rows.parquet")
    pipeline = Pipeline(
        name="asked",
        source={"path": str(folder / "rows.parquet")},
        root=str(folder / "root"),
        steps=[{"name": "made", "type": "generate", "params": {"prompt": "{text}", **params}}],
        **more,
    )
    return estimate(PipelineWork(pipeline), 2)


def test_calls_are_scaled_to_all_rows(tmp_path: Path) -> None:
    found = estimated(tmp_path, {"text": ["a", "b", "c", "d"]})
    assert (found.rows, found.sampled, [step.calls for step in found.steps]) == (4, 2, [4.0])


@pytest.mark.parametrize(("format", "rows"), [("jsonl", 3), ("csv", 4)])
def test_a_row_with_nan_counts_where_a_run_keeps_it(tmp_path: Path, format: str, rows: int) -> None:
    found = estimated(tmp_path, {"text": list("abcd"), "x": [float("nan"), 1.0, 2.0, 3.0]}, format=format)
    assert (found.rows, found.sampled, found.failed) == (rows, 2, 0)


def test_a_source_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the source has no row"):
        estimated(tmp_path, {"text": pa.array([], pa.string())})


def test_no_plugin_takes_it_for_a_run(tmp_path: Path) -> None:
    estimated(tmp_path, {"text": ["a"]}, plugins={f"{__name__}:Witness": {}})
    assert TOLD == []


def test_a_budget_that_is_met_is_told_as_that_of_a_dry_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the dry run meets the budget") as met:
        estimated(tmp_path, {"text": ["a", "b"]}, budget={"max_tokens": 1}, params={"max_tokens": 9})
    assert met.value.exit_code == 1 and "resume" not in str(met.value)
