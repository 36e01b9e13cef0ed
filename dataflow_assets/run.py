"""One run of a pipeline from the command or from Python: what is missing is made, the rest stays."""

import contextlib
from collections.abc import Iterator, Sequence

import dagster as dg
from dagster import DagsterExecutionInterruptedError, DagsterInstance
from sqlalchemy.exc import SQLAlchemyError

from dataflow_assets.assets import IO_MANAGER_KEY, pipeline_assets
from dataflow_assets.control import StopFlag, held_signals, pipeline_lock
from dataflow_assets.errors import DataflowError, RunError, Stopped
from dataflow_assets.event_log import kept_connections
from dataflow_assets.home import dagster_errors
from dataflow_assets.io.atomic import remove_leftovers
from dataflow_assets.io.step_files import UP_TO_DATE_TAGS, StepFilesIOManager
from dataflow_assets.mirror import asset_key, mark_outdated, register_batches, repair_mirror
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.planning import RANGE_END, RANGE_START, to_do
from dataflow_assets.progress import BatchDone, tell

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_pipeline(work: PipelineWork, instance: DagsterInstance, select: Sequence[str] = ()) -> None:
    """Brings the selected steps (default: all) up to date with the source, parameters and code.

    Committed batches that are still right are left alone. Raises ConfigError, SourceError or
    PipelineBusy before anything is run; RunError where the run could not go on; Stopped after a
    signal. Running it again goes on from the last committed batch.
    """
    steps = _selected(work, select)
    with contextlib.ExitStack() as stack:
        interrupted_since = stack.enter_context(pipeline_lock(work.layout.folder))
        stack.enter_context(dagster_errors(instance.root_directory, dg.DagsterInvalidInvocationError))
        stack.enter_context(kept_connections(instance))
        stop = stack.enter_context(held_signals())
        remove_leftovers(work.layout.folder)
        if not work.source_is_current():
            work.check_source_columns()
            _read_source(work, stop)
        manifest = work.known_manifest()
        work.check_columns(manifest.schema)
        work.remove_batches_but(set(manifest.batches))
        register_batches(instance, work.pipeline.name, manifest.batches)
        repair_mirror(work, instance, manifest, interrupted_since)
        names, keys = to_do(work, steps, manifest.batches)
        if names:
            stop.raise_if_up()
            tags = {RANGE_START: keys[0], RANGE_END: keys[-1]} if keys else {}
            _materialize(work, instance, names, tags)
        if select:
            mark_outdated(work, instance, manifest)


def _selected(work: PipelineWork, select: Sequence[str]) -> list[Step]:
    for name in select:
        work.pipeline.step(name)
    return [step for step in work.pipeline.ordered_steps if not select or step.name in select]


def _read_source(work: PipelineWork, stop: StopFlag) -> None:
    """Writes step 0. Its materialization is reported with whatever else Dagster does not know yet.

    A run of Dagster would cost a third of a second and show each bad path as a failed run.
    """
    for committed in work.ingest(lambda manifest: None).commit_all(stop):
        tell(BatchDone(SOURCE, committed.record, committed.reused))


def _materialize(
    work: PipelineWork, instance: DagsterInstance, names: Sequence[str], tags: dict[str, str]
) -> None:
    selection = [asset_key(work.pipeline, name) for name in names]
    with _own_errors():
        dg.materialize(
            pipeline_assets(work),
            selection=selection,
            instance=instance,
            resources={IO_MANAGER_KEY: StepFilesIOManager(root=str(work.layout.root))},
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
    except DagsterExecutionInterruptedError:
        raise Stopped("stopped by a signal between two batches; run the same command to go on") from None
    except Exception as error:
        own = _in_chain(error, DataflowError) or _in_chain(error, SQLAlchemyError)
        if own is not None:
            raise own from None
        raise RunError(f"the run failed: {type(error).__name__}: {error}") from error


def _in_chain(error: BaseException | None, kind: type[Exception]) -> Exception | None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
