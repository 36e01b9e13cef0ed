"""The profile of a step: of all its committed batches, or of some."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dataflow_assets.errors import ConfigError
from dataflow_assets.profiles.profile import Profile, merged

if TYPE_CHECKING:
    from dataflow_assets.pipeline_work import PipelineWork


def profile_of(work: "PipelineWork", step: str, keys: Sequence[str] | None = None) -> Profile:
    """The profile of a step's committed batches (default: all), or of the source's, the step `source`.

    Batches without a stored profile are read. Raises ConfigError where the pipeline has profiles off or
    no such step, CorruptFile, StorageError.
    """
    profiler = work.profiler(step)
    if profiler is None:
        raise ConfigError(
            f"pipeline {work.pipeline.name!r} has `profile: false`; take the line out to see profiles"
        )
    manifest = work.manifest()
    folder = work.folder_of(step)
    asked = keys if keys is not None else manifest.batches if manifest else ()
    records = [record for record in map(folder.record, asked) if record is not None]
    return merged(profiler.of_batch(folder, record) for record in records)
