"""What a run would cost and how long it would take, from its first rows."""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from dagster import DagsterInstance

from dataflow_assets.batch import Schema, conform, widen_schema
from dataflow_assets.errors import Paused, RunError, SourceError
from dataflow_assets.io.atomic import write_atomically
from dataflow_assets.io.formats import Format, encode, unfit_numbers
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.plugins.known import wanted_plugins
from dataflow_assets.run import run_pipeline
from dataflow_assets.serving.budget import GO_ON
from dataflow_assets.serving.spec import ServingSpec
from dataflow_assets.sources.columns import types_of
from dataflow_assets.sources.cutting import final_schema
from dataflow_assets.sources.records import read_chunks
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.status import StepStatus, step_statuses
from dataflow_assets.task_state import TaskStore


@dataclass(frozen=True)
class StepEstimate:
    """What a step that asks a model takes for all rows; `hours` is None where every answer was known."""

    name: str
    model: str
    rows: float
    calls: float
    tokens_in: float
    tokens_out: float
    cost: float
    hours: float | None


@dataclass(frozen=True)
class Estimate:
    """For `rows` rows, from the `sampled` first of them; cost in the currency of the prices."""

    rows: int
    sampled: int
    failed: int
    spent: float
    steps: list[StepEstimate]

    @property
    def cost(self) -> float:
        """The cost of all steps."""
        return math.fsum(step.cost for step in self.steps)


def estimate(work: PipelineWork, rows: int) -> Estimate:
    """Runs the first rows through the pipeline in a folder of its own, and scales what they took.

    Their calls are paid for, count against the budget and stay in the ledger, so that the run takes
    their answers from there; nothing else is asked, and no plugin is told. Raises what a run raises, but
    RunError where that would pause it for its budget: there is nothing to resume.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sampled, total = _sample(work, rows, folder / "sample.jsonl")
        trial = PipelineWork(_on_trial(work, folder), spends_as=work.identity)
        with DagsterInstance.ephemeral(tempdir=name) as instance:
            _try(trial, instance)
        tried = step_statuses(trial, trial.known_manifest().batches)
    scale = total / sampled
    steps = [
        _scaled(step, spec, scale)
        for step in tried
        if (spec := work.pipeline.serving(step.name)) is not None and step.usage
    ]
    spent = sum(step.usage.get("cost", 0.0) for step in tried)
    return Estimate(total, sampled, sum(step.failed for step in tried), spent, steps)


def _try(trial: PipelineWork, instance: DagsterInstance) -> None:
    try:
        run_pipeline(trial, instance)
    except Paused as paused:
        pause = TaskStore(instance, trial.layout.folder).pause()
        if pause is None or pause.cause != "budget":
            raise
        raise RunError(
            f"the dry run meets the budget before its last row, as a run would: "
            f"{pause.why.removesuffix(GO_ON)}; raise the budget, or try fewer rows. Answers that came are "
            "in the ledger"
        ) from paused


def _on_trial(work: PipelineWork, folder: Path) -> Pipeline:
    """The pipeline on the sample, with the ledger of the real one; no check stops it, no plugin is told."""
    source = SourceSpec(path=str(folder / "sample.jsonl"))
    steps = [step.model_copy(update={"checks": []}) for step in work.pipeline.steps]
    root = str(folder / "root")
    off = dict.fromkeys(wanted_plugins(work.pipeline), False)
    return work.pipeline.with_changes(source=source, root=root, ledger=work.ledger, steps=steps, plugins=off)


def _sample(work: PipelineWork, rows: int, path: Path) -> tuple[int, int]:
    """Writes the first rows of the source; gives how many those are, and how many there are in all.

    Rows are those that a run would read, in the sample those that JSON holds. Raises SourceError for none.
    """
    head: list[pa.Table] = []
    sampled = total = 0
    for table in _tables(work):
        if sampled < rows:
            head.append(_fitting(table, "jsonl").slice(0, rows - sampled))
            sampled += head[-1].num_rows
        total += _fitting(table, work.pipeline.format).num_rows
    if not sampled:
        raise SourceError("the source has no row that could be asked for; a run without --dry-run says why")
    schema = final_schema(widen_schema(types_of(table) for table in head))
    read = {name for table in head for name in table.column_names}
    columns: Schema = {name: kind for name, kind in schema.items() if name in read}
    table = pa.concat_tables([conform(table, columns) for table in head])
    write_atomically(path, bytes(encode(table, "jsonl")))
    return sampled, total


def _fitting(table: pa.Table, format: Format) -> pa.Table:
    """The rows without those that hold a number which the format has not."""
    unfit = [each.rows for each in unfit_numbers(table, format)]
    return table.filter(pc.invert(reduce(pc.or_, unfit))) if unfit else table


def _tables(work: PipelineWork) -> Iterator[pa.Table]:
    pieces = work.source_pieces().pieces
    return (chunk.table for piece in pieces for chunk in read_chunks(piece, work.pipeline.source))


def _scaled(step: StepStatus, spec: ServingSpec, scale: float) -> StepEstimate:
    usage = {name: value * scale for name, value in step.usage.items()}
    calls = usage["calls"] + usage["cached"]
    return StepEstimate(
        step.name,
        spec.model,
        step.rows_in * scale,
        calls,
        usage["tokens_in"],
        usage["tokens_out"],
        usage["cost"],
        _hours(usage, calls, spec),
    )


def _hours(usage: dict[str, float], calls: float, spec: ServingSpec) -> float | None:
    """The time at full concurrency, or at the set rates where they are slower."""
    if not usage["calls"]:
        return None
    seconds = usage["seconds"] / usage["calls"] * calls / spec.concurrency
    tokens = usage["tokens_in"] + usage["tokens_out"]
    for amount, per_minute in ((calls, spec.requests_per_minute), (tokens, spec.tokens_per_minute)):
        if per_minute:
            seconds = max(seconds, amount / per_minute * 60)
    return seconds / 3600
