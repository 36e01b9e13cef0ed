"""Runs in this process, counted: which batches of which asset were made, and which were left alone."""

from collections import defaultdict
from pathlib import Path

import dagster as dg

from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.progress import BatchDone, listening
from dataflow_assets.run import run_pipeline

Made = dict[str, list[str]]


def work_in(folder: Path, **changes: object) -> PipelineWork:
    """The pipeline of `folder/four.yaml`, with these changes of the command line."""
    pipeline = load_pipeline(folder / "four.yaml")
    return PipelineWork(pipeline.with_changes(**changes))  # pyright: ignore[reportArgumentType]


def made(folder: Path, instance: dg.DagsterInstance, **changes: object) -> Made:
    """Runs the pipeline; the batches that were computed, by asset, in order."""
    batches: Made = defaultdict(list)

    def note(done: BatchDone) -> None:
        if not done.reused:
            batches[done.asset].append(done.record.batch)

    with listening(note):
        run_pipeline(work_in(folder, **changes), instance)
    return dict(batches)


def keys(*numbers: int, stem: str = "in") -> list[str]:
    """Batch keys by number."""
    return [f"{stem}_b{number:05d}" for number in numbers]


def fresh_root(folder: Path, instance: dg.DagsterInstance, **changes: object) -> Path:
    """The root of the same project run anew in another root."""
    root = folder / "fresh"
    made(folder, instance, **{**changes, "root": str(root)})
    return root


def edit(file: Path, old: str, new: str) -> None:
    """Replaces text that is in the file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
