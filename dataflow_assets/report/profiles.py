"""The stored profiles of all steps; rows are not read for a report."""

from collections.abc import Mapping, Sequence

from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.profiles.of_steps import stored_profile

LEFT_OUT = "batches_left_out"
MAX_PROFILES = 8000


def stored_profiles(work: PipelineWork, records: Mapping[str, Sequence[CommitRecord]]) -> dict[str, dict]:
    """The profile of the source and each step as JSON values, of the batches that have one stored.

    `batches_left_out` says how many are not in it: of very many batches some are taken. A step where no
    batch has one is left out.
    """
    most = max(1, MAX_PROFILES // len(records))
    found = {}
    for name, committed in records.items():
        profile, batches = stored_profile(work, name, committed, most)
        if profile is not None:
            found[name] = {**profile.as_json(), LEFT_OUT: len(committed) - batches}
    return found
