"""The profile of a step: of all its committed batches, or of some."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dataflow_assets.errors import ConfigError
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline.names import SOURCE
from dataflow_assets.profiles.markdown import profile_markdown
from dataflow_assets.profiles.profile import Profile, merged
from dataflow_assets.profiles.remembered import Remembered

if TYPE_CHECKING:
    from dataflow_assets.pipeline_work import PipelineWork

_log = logging.getLogger(__name__)
_MOST_BATCHES = 100


class Stored(NamedTuple):
    """The profile of so many batches; None where no batch has one."""

    profile: Profile | None
    batches: int


# A step is what the next one had before: a run asks for its profile twice.
_recent: Remembered[str, Stored] = Remembered(2)


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


def stored_profile(work: "PipelineWork", step: str, records: Sequence[CommitRecord], most: int) -> Stored:
    """The profile of these batches of a step as far as it is stored; no rows are read.

    Of more than `most` batches some are taken, evenly: reading a profile takes about 1 ms.
    """
    profiler = work.profiler(step)
    if profiler is None:
        return Stored(None, 0)
    folder = work.folder_of(step)
    taken = _evenly(records, most)
    name = hash_of([str(folder.path), profiler.settings, [record.content_hash for record in taken]])
    recent = _recent.get(name)
    if recent is None:
        found = [profiler.stored(folder, record) for record in taken]
        there = [profile for profile in found if profile is not None]
        recent = Stored(merged(there) if there else None, len(there))
        _recent.keep(name, recent)
    return recent


def step_summary(work: "PipelineWork", step: str) -> str | None:
    """What a step did to the data, as Markdown: its profile beside that of its first parent.

    Of at most 100 batches, as far as their profiles are stored; None where none is. What goes wrong is
    logged: it is told at the end of a step, whose batches are right.
    """
    try:
        return _summary(work, step)
    except (Exception, SystemExit):  # noqa: BLE001  a profile never stops the work that it looks at
        _log.warning("no summary of step %r could be made", step, exc_info=True)
        return None


def _summary(work: "PipelineWork", step: str) -> str | None:
    manifest = work.manifest()
    if manifest is None:
        return None

    def profiled(name: str) -> Stored:
        found = map(work.folder_of(name).record, manifest.batches)
        return stored_profile(work, name, [record for record in found if record is not None], _MOST_BATCHES)

    # The parent first: it was asked for lately, and is forgotten for what comes now.
    before = None if step == SOURCE else profiled(work.pipeline.parents(work.pipeline.step(step))[0]).profile
    after = profiled(step)
    if after.profile is None or not after.profile.rows:
        return None
    text = profile_markdown(after.profile, before)
    whole = after.batches == len(manifest.batches)
    return text if whole else f"Of {after.batches} of {len(manifest.batches)} batches. {text}"


def _evenly(records: Sequence[CommitRecord], most: int) -> Sequence[CommitRecord]:
    """At most so many of the records, as far from each other as can be."""
    if len(records) <= most:
        return records
    return [records[place * len(records) // most] for place in range(most)]
