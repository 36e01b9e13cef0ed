"""Small finished steps to load from, made without Dagster."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.torch import FlowDataset
from dataflow_assets_tests.walk import pipeline, walk

Rows = list[dict[str, Any]]


def texts(count: int) -> Rows:
    """Rows of unequal length, with a nested and a rare value."""
    return [
        {"text": f"row {n} " + "many words " * (n % 7), "said": [{"n": n, "和": None}], "rare": n or None}
        for n in range(count)
    ]


def made(folder: Path, rows: Rows, batch_rows: int | None = 7, **fields: object) -> PipelineWork:
    """A pipeline over these rows, run; its only step changes nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    (folder / "in.jsonl").write_text(lines)
    return walk(pipeline(folder, folder / "in.jsonl", batch_rows=batch_rows, **fields))


def dataset(folder: Path, rows: Rows, batch_rows: int | None = 7, **fields: object) -> FlowDataset:
    """The data set of such a step."""
    return FlowDataset(made(folder, rows, batch_rows, **fields).pipeline)


def ids(batches: Iterable[dict[str, Any]]) -> list[str]:
    """The row ids of batches, in order."""
    return [row_id for batch in batches for row_id in batch["row_id"]]
