"""The stored profiles of all steps; rows are not read for a report."""

from collections.abc import Mapping, Sequence

from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.profiles.profile import merged

WITHOUT = "batches_without"


def stored_profiles(work: PipelineWork, records: Mapping[str, Sequence[CommitRecord]]) -> dict[str, dict]:
    """The profile of the source and each step as JSON values, of the batches that have one stored.

    `batches_without` says how many have none; a step where no batch has one is left out.
    """
    found = {}
    for name, committed in records.items():
        profiler = work.profiler(name)
        if profiler is None:
            continue
        folder = work.folder_of(name)
        stored = [profiler.stored(folder, record) for record in committed]
        there = [profile for profile in stored if profile is not None]
        if there:
            found[name] = {**merged(there).as_json(), WITHOUT: len(stored) - len(there)}
    return found
