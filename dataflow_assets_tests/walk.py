"""Brings a pipeline up to date without Dagster, and reads what came out: for tests of rows."""

from pathlib import Path

from dataflow_assets.batch import rows_of
from dataflow_assets.control import StopFlag
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork

Rows = list[dict[str, object]]
UNCHANGED = {
    "name": "kept",
    "type": "map_python",
    "params": {"function": "dataflow_assets_tests.walk:nothing_new"},
}


def nothing_new(row: dict[str, object]) -> dict[str, object]:
    """What a row function returns that changes nothing."""
    return {}


def walk(pipeline: Pipeline) -> PipelineWork:
    """Reads the source and makes every step, as a run does."""
    work = PipelineWork(pipeline)
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    keys = work.known_manifest().batches
    for step in pipeline.ordered_steps:
        state = work.state(step)
        if state is not None:
            list(state.commit_all(StopFlag()))
        list(work.step(step).stream(keys).commit_all(StopFlag()))
    return work


def rows(work: PipelineWork, step: str, part: str = "kept") -> Rows:
    """The rows of a step over all batches, in order."""
    folder = work.folder_of(step)
    tables = [folder.read(key, part) for key in work.known_manifest().batches]
    return [row for table in tables if table is not None for row in rows_of(table)]


def without_ids(found: Rows) -> Rows:
    """The rows as they came in: without `row_id` and without nulls, which stand for missing keys."""
    return [
        {name: value for name, value in row.items() if name != "row_id" and value is not None}
        for row in found
    ]


def pipeline(folder: Path, source: str | Path, *steps: dict, **fields: object) -> Pipeline:
    """A pipeline over `source` whose files are below `folder`."""
    return Pipeline(
        name="p",
        source={"path": str(source)},
        root=str(folder / "data"),
        steps=list(steps) or [UNCHANGED],
        **fields,
    )
