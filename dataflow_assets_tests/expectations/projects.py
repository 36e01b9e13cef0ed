"""Pipelines whose step has rules under `expect`, and how the rules stand."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dataflow_assets.checks import CheckResult, check_results
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject
from dataflow_assets_tests.walk import walk

Row = Mapping[str, object]
STEPS = """\
  - name: looked-at
    type: map_python
    params: {function: "dataflow_assets_tests.walk:nothing_new"}
    expect: RULES
  - {name: after, type: map_python, params: {function: "dataflow_assets_tests.walk:nothing_new"}}
"""


def steps(*rules: str | dict) -> str:
    """The steps with these rules of the first."""
    return STEPS.replace("RULES", json.dumps(rules, ensure_ascii=False))


def error(rule: str, **fields: str) -> dict:
    """A rule that blocks."""
    return {"that": rule, "severity": "error", **fields}


def project_with(
    folder: Path, rows: Sequence[Row], *rules: str | dict, batch_rows: int = 100
) -> SmallProject:
    """The pipeline, never run."""
    project = SmallProject(folder, steps(*rules), batch_rows=batch_rows)
    write(project, rows)
    return project


def named(rules: Iterable[str]) -> list[dict]:
    """The rules with names: by themselves two of one value would have the same."""
    return [{"that": rule, "name": f"rule {place}"} for place, rule in enumerate(rules)]


def dropping_short_texts(project: SmallProject, min_chars: int) -> PipelineWork:
    """The pipeline, never run, with a step under the rules that rejects texts as `too_short`."""
    file = project.folder / "small.yaml"
    unchanged = 'map_python\n    params: {function: "dataflow_assets_tests.walk:nothing_new"}'
    dropping = f"filter_length\n    params: {{column: text, min_chars: {min_chars}}}"
    file.write_text(file.read_text().replace(unchanged, dropping, 1))
    return fresh_work(project)


def write(project: SmallProject, rows: Sequence[Row]) -> None:
    """These rows as the source."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (project.folder / "data" / "a.jsonl").write_text("".join(lines), encoding="utf-8")


def results(project: SmallProject) -> dict[str, CheckResult]:
    """How the rules stand, by their text."""
    work = project.work
    found = check_results(work, work.pipeline.step("looked-at"))
    return {result.rule: result for result in found}


def judged(folder: Path, rows: Sequence[Row], *rules: str | dict, batch_rows: int = 100) -> list[CheckResult]:
    """The result of each rule, without Dagster."""
    project = project_with(folder, rows, *rules, batch_rows=batch_rows)
    work = walk(project.work.pipeline)
    return check_results(work, work.pipeline.step("looked-at"))


def fresh_work(project: SmallProject) -> PipelineWork:
    """The pipeline as another process would load it."""
    return PipelineWork(load_pipeline(project.folder / "small.yaml").with_changes(**project.changes))
