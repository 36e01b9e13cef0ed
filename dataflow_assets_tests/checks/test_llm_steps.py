"""Checks of a step that asks a model, whose batches are in hand together."""

import pytest

from dataflow_assets.errors import CheckFailed
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.checks.projects import made, results
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject, write_pipeline

SERVINGS = "servings: {default: {type: scripted, script: SCRIPT, concurrency: 4, max_retries: 0}}\n"
SCRIPT = """\
rules:
  - {match: {contains: bad}, error: {class: bad_request}}
  - {match: {}, text: "A long answer to {last_user}", delay_ms: 20}
"""
STEPS = """\
  - name: answered
    type: generate
    params: {prompt: "Say {text}"}
    checks: [{max_failed_share: LIMIT, each: batch, blocking: true}]
  - {name: last, type: lowercase, params: {column: text}}
"""


def asking(folder, limit):
    """The pipeline, of whose 40 batches the third has one row that fails."""
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    project = SmallProject(folder)
    project.write_rows("a", [f"row {n}" if n != 5 else "bad" for n in range(80)])
    head = SERVINGS.replace("SCRIPT", str(script))
    file = write_pipeline(folder, steps=STEPS.replace("LIMIT", limit), head=head)
    project.work = PipelineWork(load_pipeline(file).with_changes(**project.changes))
    return project


def test_a_batch_that_fails_ends_the_step_with_the_batches_before_it(tmp_path):
    project = asking(tmp_path, "0.4")
    with pytest.raises(CheckFailed, match=r"'failed_share_each_batch' failed: 0\.5 in batch 'a_b00002'"):
        project.run()
    assert project.committed("answered") == {"a_b00000", "a_b00001", "a_b00002"}


def test_answers_that_were_in_hand_are_not_asked_for_again(tmp_path):
    with pytest.raises(CheckFailed):
        asking(tmp_path, "0.4").run()
    project = asking(tmp_path, "0.5")
    assert len(made(project)["answered"]) == 37
    records = [project.work.folder_of("answered").record(batch) for batch in project.batches]
    cached = sum(record.usage["cached"] for record in records if record is not None)
    assert 0 < cached < 40
    assert results(project, "answered")[0].batches == 40
