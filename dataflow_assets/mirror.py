"""Keeps Dagster's materializations equal to the commit records, which are the truth."""

from collections.abc import Iterator

import dagster as dg
from dagster import DagsterInstance

from dataflow_assets.assets import asset_key
from dataflow_assets.io.batch_stream import Committed
from dataflow_assets.io.events import DATA_VERSION_TAG, batch_event
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.sources.manifest import Manifest


def repair_mirror(
    work: PipelineWork, instance: DagsterInstance, manifest: Manifest, interrupted_since: float | None = None
) -> int:
    """Reports every committed batch that Dagster does not know as it is; returns how many there were.

    They differ after a kill between record and event, with another DAGSTER_HOME, or when the root
    was copied from another machine. Batches that were committed after `interrupted_since`, when a
    run began that died, are reported whatever Dagster knows.
    """
    repaired = 0
    for event in _missing_events(work, instance, manifest, interrupted_since):
        instance.report_runless_asset_event(event)
        repaired += 1
    return repaired


def _missing_events(
    work: PipelineWork, instance: DagsterInstance, manifest: Manifest, interrupted_since: float | None
) -> Iterator[dg.AssetMaterialization]:
    pipeline = work.pipeline
    source = asset_key(pipeline, SOURCE)
    if instance.get_latest_materialization_event(source) is None:
        yield dg.AssetMaterialization(source, metadata={"dagster/row_count": manifest.rows})
    for step in pipeline.ordered_steps:
        yield from _missing_batches(work, step, instance, manifest, interrupted_since)


def _missing_batches(
    work: PipelineWork,
    step: Step,
    instance: DagsterInstance,
    manifest: Manifest,
    interrupted_since: float | None,
) -> Iterator[dg.AssetMaterialization]:
    pipeline = work.pipeline
    key = asset_key(pipeline, step.name)
    folder: StepFolder = work.folder_of(step.name)
    known = _known_versions(instance, key)
    parents = {name: asset_key(pipeline, name) for name in pipeline.parents(step.name)}
    for batch in manifest.batches:
        record = folder.record(batch)
        if record is None:
            continue
        maybe_unreported = interrupted_since is not None and _committed_at(folder, batch) >= interrupted_since
        if maybe_unreported or known.get(batch) != record.content_hash:
            yield batch_event(key, Committed(record, folder, reused=True), parents, batch, {})


def _committed_at(folder: StepFolder, batch: str) -> float:
    return folder.record_file(batch).stat().st_mtime


def _known_versions(instance: DagsterInstance, key: dg.AssetKey) -> dict[str, str]:
    """The content hash in each partition's newest materialization."""
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG]
    )
    return {partition: found[DATA_VERSION_TAG] for partition, found in tags.items() if DATA_VERSION_TAG in found}
