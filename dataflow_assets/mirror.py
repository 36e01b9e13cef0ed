"""Keeps Dagster's partitions and materializations equal to the manifest and the commit records, the truth."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg
from dagster import DagsterInstance
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from dataflow_assets.batch import Schema
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.io.asset_columns import AssetColumns
from dataflow_assets.io.batch_stream import Committed
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.events import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    batch_event,
    data_version,
    earlier_metadata,
)
from dataflow_assets.io.lineage import Lineage, Parents
from dataflow_assets.io.step_files import Totals, summary_metadata
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.operators.operator import DatasetOperator
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.columns import ColumnOrigins, column_origins
from dataflow_assets.pipeline_work import SOURCE, PipelineWork, state_name
from dataflow_assets.sources.manifest import Manifest


def asset_key(pipeline: Pipeline, name: str) -> dg.AssetKey:
    """The key of a step, of `source`, or of `<step>_state`."""
    return dg.AssetKey([pipeline.name, name])


def asset_columns(work: PipelineWork, name: str, source_schema: Schema) -> AssetColumns:
    """The meanings and origins of the columns of a step or of the source."""
    return all_asset_columns(work, source_schema)[name][0]


def all_asset_columns(work: PipelineWork, source_schema: Schema) -> dict[str, tuple[AssetColumns, Schema]]:
    """The same, with the columns themselves, of the source and of each step."""
    return {
        name: (AssetColumns(origins.meanings, _keyed(work.pipeline, origins)), origins.schema)
        for name, origins in column_origins(work.pipeline, source_schema).items()
    }


def _keyed(pipeline: Pipeline, origins: ColumnOrigins) -> dict[str, list[tuple[dg.AssetKey, str]]]:
    return {
        column: [(asset_key(pipeline, asset), other) for asset, other in deps]
        for column, deps in origins.made_of.items()
    }


def parents_of(pipeline: Pipeline, step: Step) -> Parents:
    """The assets that a step's batches are made of."""
    names = list(pipeline.parents(step.name))
    whole = [SOURCE] if SOURCE in names else []
    if isinstance(pipeline.operator(step.name), DatasetOperator):
        whole.append(state_name(step.name))
    return Parents(
        {name: asset_key(pipeline, name) for name in names if name != SOURCE},
        {name: asset_key(pipeline, name) for name in whole},
    )


def parents_of_state(pipeline: Pipeline, step: Step) -> Parents:
    """The assets that the state of a dataset-scope step is made of."""
    parents = parents_of(pipeline, step)
    whole = {name: key for name, key in parents.whole.items() if name == SOURCE}
    return Parents(parents.batches, whole)


def register_batches(instance: DagsterInstance, pipeline: str, batches: Sequence[str]) -> None:
    """Makes the partitions of a pipeline exactly these, in this order.

    Dagster keeps dynamic partitions in the order of their arrival; from the first that is out of
    order on they are taken out and put in again, which keeps their materializations.
    """
    present = list(instance.get_dynamic_partitions(pipeline))
    common = 0
    while common < min(len(present), len(batches)) and present[common] == batches[common]:
        common += 1
    for key in present[common:]:
        instance.delete_dynamic_partition(pipeline, key)
    if batches[common:]:
        instance.add_dynamic_partitions(pipeline, list(batches[common:]))


def repair_mirror(
    work: PipelineWork,
    instance: DagsterInstance,
    manifest: Manifest,
    interrupted_since: float | None = None,
) -> int:
    """Reports every committed batch that Dagster does not know; returns how many there were.

    They differ after a kill between record and event, with another DAGSTER_HOME, or when the root
    was copied from another machine; when the command has read the source, which it does without a run
    of Dagster; and where a launch from the UI failed, Dagster calls failed what
    is committed. Batches that were committed after `interrupted_since`, when a
    run began that died, are reported whatever Dagster knows.
    """
    repaired = 0
    source = asset_key(work.pipeline, SOURCE)
    known = instance.get_latest_materialization_event(source)
    if known is None or known.timestamp < work.layout.manifest_file.stat().st_mtime:
        tags = {CODE_VERSION_TAG: manifest.settings}
        event = _whole_event(source, work.folder_of(SOURCE), manifest, tags, shows_rows=True)
        metadata = {**event.metadata, **summary_metadata(work, SOURCE)}
        instance.report_runless_asset_event(event._replace(metadata=metadata))
        repaired += 1
    for event in _missing_events(work, instance, manifest, interrupted_since, mark_outdated=False):
        instance.report_runless_asset_event(event)
        repaired += 1
    return repaired


def mark_outdated(work: PipelineWork, instance: DagsterInstance, manifest: Manifest) -> None:
    """Reports batches whose parents have other content now as made of the old: Dagster shows them as stale.

    Batches that Dagster does not know are reported too.
    """
    for event in _missing_events(work, instance, manifest, None, mark_outdated=True):
        instance.report_runless_asset_event(event)


def _missing_events(
    work: PipelineWork,
    instance: DagsterInstance,
    manifest: Manifest,
    interrupted_since: float | None,
    mark_outdated: bool,
) -> Iterator[dg.AssetMaterialization]:
    pipeline = work.pipeline
    contents = {SOURCE: _contents(_records(work.folder_of(SOURCE), manifest.batches))}
    # Whoever points to an event that Dagster no longer has must point to the new one.
    lost: dict[str, set[str]] = {}
    for step in pipeline.ordered_steps:
        key, folder, parents = (
            asset_key(pipeline, step.name),
            work.folder_of(step.name),
            parents_of(pipeline, step),
        )
        lost_above = set().union(*(lost[name] for name in parents.batches))
        if isinstance(pipeline.operator(step.name), DatasetOperator):
            yield from _missing_state(work, step, instance, manifest, bool(lost_above))
            contents[state_name(step.name)] = _contents(_records(work.step(step).verdicts, manifest.batches))
        records = _records(folder, manifest.batches)
        contents[step.name] = _contents(records)
        known, failed = _known_versions(instance, key), _failed(instance, key, manifest)
        lost[step.name] = records.keys() - known.keys()
        lineage = Lineage(instance, parents)
        columns = asset_columns(work, step.name, manifest.schema)
        made_of = _inputs_by_batch(work, step, records, contents)
        untold = _untold(instance, key, parents, made_of, known)
        for batch, inputs in made_of.items():
            record = records[batch]
            changed = {name for name, used in inputs.items() if contents[name].get(batch) != used}
            as_known = known.get(batch) == data_version(record, bool(changed) and mark_outdated)
            as_known = as_known and batch not in failed | lost_above | untold
            if not as_known or _committed_after(folder, batch, interrupted_since):
                tags = lineage.tags_of_batch(batch, inputs, changed)
                committed = Committed(record, folder, reused=True)
                earlier = earlier_metadata(instance, key, committed) if batch in known else None
                outdated = bool(changed)
                yield batch_event(key, committed, tags, {}, columns, outdated, earlier)


def _inputs_by_batch(
    work: PipelineWork,
    step: Step,
    records: Mapping[str, CommitRecord],
    contents: Mapping[str, Mapping[str, str]],
) -> dict[str, Mapping[str, str]]:
    """What each committed batch was made of, by the names that the steps have now.

    A record has the names of its time: where a step was renamed or another number fell to it, its
    batches stay. Batches that were left by another step that had this number are not in it.
    """
    parents, now = parents_of(work.pipeline, step), work.step(step)
    names = [*parents.batches, *parents.whole]
    found: dict[str, Mapping[str, str]] = {}
    for batch, record in records.items():
        if record.inputs.keys() != set(names) and now.is_done(batch):
            found[batch] = {name: contents[name][batch] for name in names}
        elif record.inputs.keys() <= contents.keys():
            found[batch] = record.inputs
    return found


def _untold(
    instance: DagsterInstance,
    key: dg.AssetKey,
    parents: Parents,
    made_of: Mapping[str, Mapping[str, str]],
    known: Collection[str],
) -> set[str]:
    """The known batches, made of the parents that the step has now, whose events do not name them.

    Only the last is looked at: they are told in order, so if that one is right, all are.
    """
    names = {*parents.batches, *parents.whole}
    batches = [batch for batch, inputs in made_of.items() if batch in known and inputs.keys() == names]
    if not batches:
        return set()
    wanted = dg.AssetRecordsFilter(key, asset_partitions=batches[-1:])
    newest = instance.fetch_materializations(wanted, limit=1).records[0].asset_materialization
    told = newest is not None and parents.are_named_in(newest.tags or {})
    return set() if told else set(batches)


def _missing_state(
    work: PipelineWork, step: Step, instance: DagsterInstance, manifest: Manifest, again: bool
) -> Iterator[dg.AssetMaterialization]:
    key = asset_key(work.pipeline, state_name(step.name))
    state = work.state(step)
    parents = parents_of_state(work.pipeline, step)
    newest = instance.get_latest_materialization_event(key)
    told = newest.asset_materialization if newest else None
    known = told is not None and parents.are_named_in(told.tags or {})
    if state is None or (known and not again) or not state.is_done():
        return
    code_version = {CODE_VERSION_TAG: operator_fingerprint(state.operator)}
    tags = Lineage(instance, parents).tags_of_whole()
    yield _whole_event(key, state.work.verdicts, manifest, {**code_version, **tags})


def _whole_event(
    key: dg.AssetKey,
    folder: StepFolder,
    manifest: Manifest,
    tags: Mapping[str, str],
    shows_rows: bool = False,
) -> dg.AssetMaterialization:
    totals = Totals(shows_rows)
    for record in _records(folder, manifest.batches).values():
        totals.add(Committed(record, folder, reused=False))
    return dg.AssetMaterialization(key, metadata=totals.metadata(), tags=tags)


def _records(folder: StepFolder, batches: Sequence[str]) -> dict[str, CommitRecord]:
    records = ((batch, folder.record(batch)) for batch in batches)
    return {batch: record for batch, record in records if record is not None}


def _contents(records: Mapping[str, CommitRecord]) -> dict[str, str]:
    return {batch: record.content_hash for batch, record in records.items()}


def _committed_after(folder: StepFolder, batch: str, time: float | None) -> bool:
    return time is not None and folder.record_file(batch).stat().st_mtime >= time


def _failed(instance: DagsterInstance, key: dg.AssetKey, manifest: Manifest) -> set[str]:
    """The batches that Dagster calls failed: runs that failed were to make them."""
    partitions = dg.DynamicPartitionsDefinition(name=manifest.pipeline)
    with partition_loading_context(dynamic_partitions_store=instance):
        found = instance.get_status_by_partition(key, manifest.batches, partitions) or {}
    return {batch for batch, status in found.items() if status == AssetPartitionStatus.FAILED}


def _known_versions(instance: DagsterInstance, key: dg.AssetKey) -> dict[str, str]:
    """The data version in each partition's newest materialization."""
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG]
    )
    return {
        partition: found[DATA_VERSION_TAG] for partition, found in tags.items() if DATA_VERSION_TAG in found
    }
