"""The stored profiles of all steps; rows are not read for a report."""

from collections.abc import Mapping, Sequence

from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline_work import PipelineWork


def stored_profiles(work: PipelineWork, records: Mapping[str, Sequence[CommitRecord]]) -> dict[str, dict]:
    """The profile of the source and each step as JSON values, of the batches that have one."""
    return {}
