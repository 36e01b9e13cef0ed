"""The one factory: a pipeline's source, steps and states as Dagster assets."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import dagster as dg

from dataflow_assets.asset_pages import AssetPage, AssetPages
from dataflow_assets.check_events import StepChecks, check_specs
from dataflow_assets.checks import raise_if_held
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.io.lineage import Parents
from dataflow_assets.io.step_files import ONLY_NEW_TAG, StepOutput
from dataflow_assets.mirror import (
    asset_columns,
    asset_key,
    mark_outdated,
    parents_of,
    parents_of_state,
    register_batches,
)
from dataflow_assets.operators.operator import DatasetOperator
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.names import identifier
from dataflow_assets.pipeline.replicas import replica_request
from dataflow_assets.pipeline_work import SOURCE, PipelineWork, state_name
from dataflow_assets.resources.ray import RAY_KEY, settings_of
from dataflow_assets.resources.servings import SERVINGS_KEY
from dataflow_assets.sources.current import settings_hash
from dataflow_assets.sources.manifest import Manifest

IO_MANAGER_KEY = "step_files"
_ONE_RUN = dg.BackfillPolicy.single_run()


def partitions_of(pipeline: Pipeline) -> dg.DynamicPartitionsDefinition:
    """The batches of a pipeline as partitions; step 0 registers them."""
    return dg.DynamicPartitionsDefinition(name=pipeline.name)


def pipeline_assets(work: PipelineWork, pages: bool = False) -> list[dg.AssetsDefinition]:
    """One asset for the source, one for each step, one for the state of each dataset-scope step.

    With `pages` they have all that the UI shows of them before a run, which takes a look at the source.
    """
    pipeline = work.pipeline
    shown = AssetPages(work, pages)
    with warnings.catch_warnings():
        # `backfill_policy` is beta; saying so once for every asset helps nobody.
        warnings.simplefilter("ignore", dg.BetaWarning)
        assets = [_source_asset(work, shown.source())]
        for step in pipeline.ordered_steps:
            if isinstance(pipeline.operator(step.name), DatasetOperator):
                assets.append(_state_asset(work, step, shown.state(step)))
            assets.append(_step_asset(work, step, shown.step(step)))
    return assets


def _source_asset(work: PipelineWork, page: AssetPage) -> dg.AssetsDefinition:
    pipeline = work.pipeline

    @dg.asset(
        key=asset_key(pipeline, SOURCE),
        group_name=identifier(pipeline.name),
        io_manager_key=IO_MANAGER_KEY,
        backfill_policy=_ONE_RUN,
        code_version=settings_hash(pipeline),
        pool=pipeline.name,
        description=page.description,
        metadata=page.metadata,
        tags=page.tags,
        kinds=page.kinds,
        owners=page.owners,
    )
    def source(context: dg.AssetExecutionContext) -> StepOutput:
        def finish(manifest: Manifest) -> None:
            register_batches(context.instance, pipeline.name, manifest.batches)
            if ONLY_NEW_TAG not in context.run.tags:
                mark_outdated(work, context.instance, manifest)

        return StepOutput(work.ingest(finish), work, Parents(), partitioned=False)

    return source


def _step_asset(work: PipelineWork, step: Step, page: AssetPage) -> dg.AssetsDefinition:
    pipeline = work.pipeline
    operator = pipeline.operator(step.name)
    parents = parents_of(pipeline, step)

    @dg.asset(
        key=asset_key(pipeline, step.name),
        deps=[*parents.batches.values(), *parents.whole.values()],
        group_name=identifier(pipeline.name),
        partitions_def=partitions_of(pipeline),
        backfill_policy=_ONE_RUN,
        io_manager_key=IO_MANAGER_KEY,
        code_version=operator_fingerprint(operator),
        pool=step.pool or pipeline.name,
        required_resource_keys=_resources_of(pipeline, step),
        check_specs=check_specs(step, asset_key(pipeline, step.name)),
        description=page.description,
        metadata=page.metadata,
        tags=page.tags,
        kinds=page.kinds,
        owners=page.owners,
    )
    def batches(context: dg.AssetExecutionContext) -> Iterator[dg.Output[StepOutput] | dg.AssetCheckResult]:
        raise_if_held(work, step)
        checks = StepChecks(work, step, context.run, context.instance)
        servings = getattr(context.resources, SERVINGS_KEY).specs() if pipeline.serving(step) else {}
        there = work.asking_there(servings)
        if replica_request(step) is not None:
            there = replace(there, ray=settings_of(getattr(context.resources, RAY_KEY)))
        stream = there.stream(step, context.partition_keys, _selected_names(context, pipeline))
        columns = asset_columns(work, step.name, work.known_manifest().schema)
        output = StepOutput(stream, work, parents, partitioned=True, checks=checks, columns=columns)
        yield dg.Output(output)
        yield from checks.evaluations()

    return batches


def _resources_of(pipeline: Pipeline, step: Step) -> set[str]:
    """The resources that the step needs."""
    keys = {SERVINGS_KEY} if pipeline.serving(step) else set()
    return keys | ({RAY_KEY} if replica_request(step) else set())


def _selected_names(context: dg.AssetExecutionContext, pipeline: Pipeline) -> set[str]:
    """The assets of the pipeline that this run makes, by the last parts of their keys."""
    selected = context.run.asset_selection or context.job_def.asset_layer.executable_asset_keys
    return {key.path[-1] for key in selected if list(key.path[:-1]) == [pipeline.name]}


def _state_asset(work: PipelineWork, step: Step, page: AssetPage) -> dg.AssetsDefinition:
    pipeline = work.pipeline
    operator = pipeline.operator(step.name)
    parents = parents_of_state(pipeline, step)
    every_batch = dg.AllPartitionMapping()
    deps = [
        *(dg.AssetDep(key, partition_mapping=every_batch) for key in parents.batches.values()),
        *(dg.AssetDep(key) for key in parents.whole.values()),
    ]

    @dg.asset(
        key=asset_key(pipeline, state_name(step.name)),
        deps=deps,
        group_name=identifier(pipeline.name),
        backfill_policy=_ONE_RUN,
        io_manager_key=IO_MANAGER_KEY,
        code_version=operator_fingerprint(operator),
        pool=pipeline.name,
        description=page.description,
        metadata=page.metadata,
        tags=page.tags,
        kinds=page.kinds,
        owners=page.owners,
    )
    def state(context: dg.AssetExecutionContext) -> StepOutput:
        raise_if_held(work, step)
        decided = work.state(step)
        assert decided is not None
        return StepOutput(decided, work, parents, partitioned=False)

    return state
