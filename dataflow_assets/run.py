"""One run of a pipeline from the command or from Python: what is missing is made, the rest stays."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import dagster as dg
from dagster import DagsterExecutionInterruptedError, DagsterInstance
from dagster._core.errors import DagsterAssetCheckFailedError
from sqlalchemy.exc import SQLAlchemyError

from dataflow_assets.assets import IO_MANAGER_KEY, pipeline_assets
from dataflow_assets.check_events import report_checks
from dataflow_assets.checks import FailedGate, raise_if_failed
from dataflow_assets.control import pipeline_lock
from dataflow_assets.errors import CheckFailed, DataflowError, RunError, Stopped, said_by
from dataflow_assets.home import dagster_errors
from dataflow_assets.io.atomic import remove_leftovers
from dataflow_assets.io.step_files import UP_TO_DATE_TAGS, StepFilesIOManager
from dataflow_assets.kept_connections import kept_connections
from dataflow_assets.mirror import asset_key, mark_outdated, register_batches, repair_mirror
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.planning import RANGE_END, RANGE_START, is_up_to_date, plan_of
from dataflow_assets.progress import BatchDone, StepBegun, say, tell, tell_step
from dataflow_assets.resources.ray import ray_resources, refused_if_unfit
from dataflow_assets.resources.servings import SERVINGS_KEY, ServingsResource
from dataflow_assets.running_task import RunningTask, running_task
from dataflow_assets.task_state import LAUNCHED_BY, TaskStore

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_pipeline(
    work: PipelineWork, instance: DagsterInstance, select: Sequence[str] = (), run_id: str | None = None
) -> None:
    """Brings the selected steps (default: all) up to date with the source, parameters and code.

    Committed batches that are still right are left alone. Raises ConfigError, SourceError or
    PipelineBusy before anything is run, Paused too while the pipeline is paused; RunError where the
    run could not go on; Stopped after a signal, Paused when it is paused meanwhile. Running it again
    goes on from the last committed batch. CheckFailed, a RunError, is raised at the end where a blocking
    check of a step fails: what does not depend on that step is made. `run_id` is that of the run which
    Dagster launched for this, if one was.
    """
    steps = work.pipeline.selected(select)  # the source is read in any case
    store = TaskStore(instance, work.layout.folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(dagster_errors(instance.root_directory, dg.DagsterInvalidInvocationError))
        store.raise_if_paused()
        interrupted_since = stack.enter_context(pipeline_lock(work.layout.folder))
        stack.enter_context(kept_connections(instance))
        task = stack.enter_context(running_task(store, work, run_id))
        if task.died_here_twice:
            say(
                "the last two runs were killed at one place: worker processes do the rows now, and find one "
                "that ends its process"
            )
            work = replace(work, apart=True)
        remove_leftovers(work.layout.folder)
        if not work.source_is_current():
            work.check_source_columns()
            stack.callback(work.pools.close)
            work.start_workers()
            _read_source(work, task)
        manifest = work.known_manifest()
        work.check_columns(manifest.schema)
        work.remove_batches_but(set(manifest.batches))
        register_batches(instance, work.pipeline.name, manifest.batches)
        repair_mirror(work, instance, manifest, interrupted_since)
        gates = _make(work, instance, steps, manifest.batches, task)
        if select or gates:
            mark_outdated(work, instance, manifest)
        report_checks(work, instance)
        raise_if_failed(gates)
        task.is_complete = not select or is_up_to_date(work, manifest.batches)


def _make(
    work: PipelineWork,
    instance: DagsterInstance,
    steps: Sequence[Step],
    batches: Sequence[str],
    task: RunningTask,
) -> list[FailedGate]:
    """Makes what is missing; where a blocking check fails, the rest without what is downstream of it.

    Gives the blocking checks that failed. With `reuse` off all is made anew up to the first of them.
    """
    plan = plan_of(work, steps, batches)
    while plan.names:
        task.stop.raise_if_up()
        tags = {RANGE_START: plan.keys[0], RANGE_END: plan.keys[-1]} if plan.keys else {}
        if task.launched_run is not None:
            tags[LAUNCHED_BY] = task.launched_run
        try:
            _materialize(work, instance, plan.names, tags)
            return plan.gates
        except CheckFailed:
            made, work = plan.names, replace(work, reuse=True)
            plan = plan_of(work, steps, batches)
            if plan.names == made or not plan.gates:
                raise
    return plan.gates


def _read_source(work: PipelineWork, task: RunningTask) -> None:
    """Writes step 0. Its materialization is reported with whatever else Dagster does not know yet.

    A run of Dagster would cost a third of a second and show each bad path as a failed run.
    """
    task.begin_step(SOURCE)
    tell_step(StepBegun(SOURCE, None))
    with task.told.step(SOURCE):
        for committed in work.ingest(lambda manifest: None).commit_all(task.stop):
            if committed.again:
                continue
            task.committed(committed.record.batch)
            task.told.committed(committed.record, committed.reused)
            tell(BatchDone(SOURCE, committed.record, committed.reused))


def _materialize(
    work: PipelineWork, instance: DagsterInstance, names: Sequence[str], tags: dict[str, str]
) -> None:
    selection = [asset_key(work.pipeline, name) for name in names]
    rays = ray_resources([work.pipeline])
    with _own_errors(), refused_if_unfit(work.pipeline, names, rays):
        dg.materialize(
            pipeline_assets(work),
            selection=selection,
            instance=instance,
            resources={
                IO_MANAGER_KEY: StepFilesIOManager(root=str(work.layout.root)),
                SERVINGS_KEY: ServingsResource(),
                **rays,
            },
            tags={**tags, **UP_TO_DATE_TAGS, "dataflow/pipeline": work.pipeline.name},
            run_config=_QUIET,
        )


@contextlib.contextmanager
def _own_errors() -> Iterator[None]:
    """Raises the error of ours or of the database that Dagster wrapped; anything else as RunError.

    A signal outside of a commit, which Dagster makes an error of its own, is a stop too.
    """
    try:
        yield
    except DataflowError:
        raise
    except DagsterAssetCheckFailedError as error:
        raise CheckFailed(str(error)) from None
    except DagsterExecutionInterruptedError:
        raise Stopped("stopped by a signal between two batches; run the same command to go on") from None
    except (Exception, SystemExit) as error:
        own = _in_chain(error, DataflowError) or _in_chain(error, SQLAlchemyError)
        if own is not None:
            raise own from None
        raise RunError(f"the run failed: {type(error).__name__}: {said_by(error)}") from error


def _in_chain(error: BaseException | None, kind: type[Exception]) -> Exception | None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
