"""What starts runs by itself: a sensor that watches the source, and a daily schedule; both off at first."""

from collections.abc import Iterator, Sequence

import dagster as dg
from dagster import DagsterInstance
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from dataflow_assets.control import is_locked
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.fingerprints import hash_of, operator_fingerprint
from dataflow_assets.io.step_files import UP_TO_DATE_TAGS
from dataflow_assets.mirror import asset_key
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.names import identifier
from dataflow_assets.pipeline_work import SOURCE, PipelineWork, state_name
from dataflow_assets.planning import RANGE_END, RANGE_START, plan_of
from dataflow_assets.sources.current import settings_hash
from dataflow_assets.sources.piece import Found
from dataflow_assets.task_state import pause_requested

_LOOK_EVERY_S = 30


def read_source_job(pipeline: Pipeline) -> UnresolvedAssetJobDefinition:
    """The job that reads the source again: new and changed files become batches."""
    return dg.define_asset_job(
        f"{identifier(pipeline.name)}_read_source",
        selection=[asset_key(pipeline, SOURCE)],
        description=f"Reads the source of {pipeline.name} again; unchanged files cost nothing.",
    )


def watch_sensor(work: PipelineWork) -> dg.SensorDefinition:
    """Looks at the source: reads it when it changed, then runs the batches that are not up to date."""
    pipeline = work.pipeline
    keys = [asset_key(pipeline, name) for name in asset_names(pipeline)]

    @dg.sensor(
        name=f"{identifier(pipeline.name)}_watch",
        description=f"Watches the source of {pipeline.name}; adds new data as batches and runs them.",
        asset_selection=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=_LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
    )
    def watch(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        pause = pause_requested(context.instance, work)
        if pause is not None:
            yield dg.SkipReason(str(pause))
        else:
            yield from watched(work, context.instance)

    return watch


def watched(work: PipelineWork, instance: DagsterInstance) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """The next run that the pipeline needs, or why there is none."""
    pipeline = work.pipeline
    if is_locked(work.layout.folder):
        yield dg.SkipReason(f"{pipeline.name} is being run")
        return
    try:
        found = None if work.source_is_current() else work.source_pieces()
    except (SourceError, ConfigError) as error:
        yield dg.SkipReason(str(error))
        return
    unwatched = found.unwatched if found is not None and work.manifest() is not None else ""
    if found is not None and not unwatched:
        run_key = _source_key(work, instance, found)
        yield dg.RunRequest(run_key=run_key, asset_selection=[asset_key(pipeline, SOURCE)])
        return
    batches = work.known_manifest().batches
    names, keys, gates = plan_of(work, pipeline.ordered_steps, batches)
    if not names:
        told = "; ".join(map(str, gates))
        up_to_date = f"{pipeline.name} is up to date{f'; {unwatched}' if unwatched else ''}"
        yield dg.SkipReason(told or up_to_date)
        return
    span = {RANGE_START: keys[0], RANGE_END: keys[-1]} if keys else {}
    yield dg.RunRequest(
        run_key=_steps_key(work, names, keys),
        asset_selection=[asset_key(pipeline, name) for name in names],
        tags={**span, **UP_TO_DATE_TAGS},
    )


def _steps_key(work: PipelineWork, names: Sequence[str], keys: Sequence[str]) -> str:
    """The same until a step is committed to or changed: a run that failed and made nothing is tried once."""
    pipeline = work.pipeline
    made_by = [operator_fingerprint(pipeline.operator(step)) for step in pipeline.ordered_steps]
    return f"steps-{hash_of([names, keys, made_by, _last_commits(work)])}"


def _last_commits(work: PipelineWork) -> list[int]:
    """When each step was last committed to."""
    folders = [work.layout.step(number).commits for number in range(len(work.pipeline.steps) + 1)]
    return [folder.stat().st_mtime_ns if folder.is_dir() else 0 for folder in folders]


def _source_key(work: PipelineWork, instance: DagsterInstance, found: Found) -> str:
    """The same until the source is read or looks otherwise: one that cannot be read is tried once.

    What was read since is asked of Dagster: the folder may have been thrown away.
    """
    last = instance.get_latest_materialization_event(asset_key(work.pipeline, SOURCE))
    looks = [[piece.name, piece.look()] for piece in found.pieces]
    return f"source-{hash_of([looks, settings_hash(work.pipeline), last and last.timestamp])}"


def asset_names(pipeline: Pipeline) -> list[str]:
    """The last parts of the asset keys of a pipeline, in the order of a row's way."""
    names = [SOURCE]
    for step in pipeline.ordered_steps:
        if pipeline.operator(step.name).scope == "dataset":
            names.append(state_name(step.name))
        names.append(step.name)
    return names


def daily_schedule(pipeline: Pipeline, job: UnresolvedAssetJobDefinition) -> dg.ScheduleDefinition:
    """Reads the source every night, unless the pipeline is paused; the sensor runs what that brings."""
    work = PipelineWork(pipeline)

    @dg.schedule(
        name=f"{identifier(pipeline.name)}_daily",
        job=job,
        cron_schedule="0 3 * * *",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Reads the source of {pipeline.name} at 3 in the morning.",
    )
    def daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        pause = pause_requested(context.instance, work)
        return dg.RunRequest() if pause is None else dg.SkipReason(str(pause))

    return daily
