"""Keeps the profile of a complete run where a rule compares with it."""

from typing import TYPE_CHECKING

from dataflow_assets.expectations.evidence import contents_of
from dataflow_assets.expectations.references import keep_last_run, newest_contents
from dataflow_assets.profiles.of_steps import profile_of

if TYPE_CHECKING:
    from dataflow_assets.pipeline_work import PipelineWork


def keep_last_runs(work: "PipelineWork") -> None:
    """Keeps what each step with such a rule holds now. Raises CorruptFile, StorageError."""
    for step in work.pipeline.steps:
        if not any(rule.uses_last_run for rule in step.expect):
            continue
        folder, profiler = work.folder_of(step.name), work.profiler(step.name)
        if profiler is None:
            continue
        records = [folder.record(key) for key in work.known_manifest().batches]
        contents = contents_of([record for record in records if record is not None])
        if contents != newest_contents(folder, profiler.measures):
            keep_last_run(folder, contents, profiler.measures, profile_of(work, step.name))
