"""The stored profiles of all steps; rows are not read for a report."""

from collections.abc import Mapping, Sequence

from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.profiles.profile import merged

LEFT_OUT = "batches_left_out"
MAX_PROFILES = 8000


def stored_profiles(work: PipelineWork, records: Mapping[str, Sequence[CommitRecord]]) -> dict[str, dict]:
    """The profile of the source and each step as JSON values, of the batches that have one stored.

    Of very many batches some are taken, evenly: reading a profile takes about 1 ms. `batches_left_out`
    says how many are not in it; a step where no batch has one is left out.
    """
    most = max(1, MAX_PROFILES // len(records))
    found = {}
    for name, committed in records.items():
        profiler = work.profiler(name)
        if profiler is None:
            continue
        folder = work.folder_of(name)
        stored = (profiler.stored(folder, record) for record in evenly(committed, most))
        there = [profile for profile in stored if profile is not None]
        if there:
            found[name] = {**merged(there).as_json(), LEFT_OUT: len(committed) - len(there)}
    return found


def evenly(records: Sequence[CommitRecord], most: int) -> Sequence[CommitRecord]:
    """At most so many of the records, as far from each other as can be."""
    if len(records) <= most:
        return records
    return [records[place * len(records) // most] for place in range(most)]
