"""A pipeline whose second step has checks, between one before and one after; what Dagster knows of them."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from dataflow_assets.checks import CheckResult
from dataflow_assets.progress import BatchDone, listening
from dataflow_assets.status import status_of
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject

ANSWERS = """\
  - {name: lower, type: lowercase, params: {column: text}}
  - name: answers
    type: map_python
    params:
      function: "dataflow_assets_tests.checks.row_functions:answered"
      columns: {answer: string, score: int64}
    checks: [CHECKS]
  - {name: last, type: normalize_whitespace, params: {column: text}}
"""
ASIDE = "  - {name: aside, type: normalize_whitespace, params: {column: text}, depends_on: [lower]}\n"
BLOCKS_FAILED = "{max_failed_share: 0.1, blocking: true}"
BLOCKS_EACH = "{max_failed_share: 0.4, each: batch, blocking: true}"
TEXTS = ["one", "two", "bad", "four", "five", "six"]


def steps(*checks: str, more: str = "") -> str:
    """The steps with these checks of the second."""
    return ANSWERS.replace("CHECKS", ", ".join(checks)) + more


def project_with(
    folder: Path, *checks: str, texts: Sequence[str] = TEXTS, more: str = "", **fields: object
) -> SmallProject:
    """The pipeline with two rows a batch, never run."""
    project = SmallProject(folder, steps(*checks, more=more), **fields)  # pyright: ignore[reportArgumentType]
    project.write_rows("a", texts)
    return project


def made(project: SmallProject) -> dict[str, list[str]]:
    """Runs the pipeline, whatever its checks say; the batches that were computed, by asset."""
    batches: dict[str, list[str]] = {}

    def note(done: BatchDone) -> None:
        if not done.reused:
            batches.setdefault(done.asset, []).append(done.record.batch[-1])

    with listening(note):
        project.run()
    return batches


def results(project: SmallProject, step: str = "answers") -> list[CheckResult]:
    """How the checks of a step stand."""
    return next(found.checks for found in status_of(project.work).steps if found.name == step)


def evaluations(
    project: SmallProject, check: str, step: str = "answers"
) -> list[tuple[bool, str | None, float | None]]:
    """The evaluations in the instance, oldest first: passed, partition, value."""
    key = dg.AssetCheckKey(project.key(step), check)
    records = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
    found = []
    for record in reversed(records):
        event = record.event.dagster_event if record.event else None
        if event is not None and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            data = event.asset_check_evaluation_data
            value = data.metadata["value"].value if "value" in data.metadata else None
            found.append((data.passed, data.partition, value))
    return found
