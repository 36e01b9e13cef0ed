"""The profile of a step: of all its committed batches, or of some."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.profiles.markdown import profile_markdown
from dataflow_assets.profiles.profile import Profile, merged

if TYPE_CHECKING:
    from dataflow_assets.pipeline_work import PipelineWork

_SOURCE = "source"
_MOST_BATCHES = 100
# A step is what the next one had before: a run asks for its profile twice.
_recent: dict[str, Profile] = {}
_MOST_RECENT = 2


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


def step_summary(work: "PipelineWork", step: str) -> str | None:
    """What a step did to the data, as Markdown: its profile beside that of its first parent.

    Of at most 100 batches, evenly spread. None where profiles are off or no batch is committed.
    """
    manifest = work.manifest()
    if manifest is None or work.profiler(step) is None:
        return None
    stride = -(-len(manifest.batches) // _MOST_BATCHES) or 1
    keys = manifest.batches[::stride]
    try:
        after = _recently(work, step, keys)
        parent = None if step == _SOURCE else work.pipeline.parents(work.pipeline.step(step))[0]
        before = None if parent is None else _recently(work, parent, keys)
    except RunError:  # a file was changed by hand: whoever reads its rows says so
        return None
    if not after.rows:
        return None
    text = profile_markdown(after, before)
    return text if stride == 1 else f"Of {len(keys)} of {len(manifest.batches)} batches. {text}"


def _recently(work: "PipelineWork", step: str, keys: Sequence[str]) -> Profile:
    folder = work.folder_of(step)
    records = [record and record.content_hash for record in map(folder.record, keys)]
    name = hash_of([str(folder.path), records])
    if name not in _recent:
        if len(_recent) >= _MOST_RECENT:
            _recent.clear()
        _recent[name] = profile_of(work, step, keys)
    return _recent[name]
