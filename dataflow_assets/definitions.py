"""The wiring of this deployment: every known pipeline, the IO manager, jobs, sensors and schedules."""

import logging
from collections.abc import Iterable, Sequence

import dagster as dg

from dataflow_assets.assets import IO_MANAGER_KEY, pipeline_assets
from dataflow_assets.automation import daily_schedule, read_source_job, watch_sensor
from dataflow_assets.failure_notice import run_failure_sensor
from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets.jobs.failed_rows import failed_rows_job, put_back_job, retry_failed_job
from dataflow_assets.jobs.looking import export_job, profile_job, report_job, status_job, trace_job
from dataflow_assets.jobs.running import pause_job, resume_job, run_job
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.catalog import usable
from dataflow_assets.pipeline_work import DEFAULT_ROOT, ROOT_VARIABLE, PipelineWork
from dataflow_assets.recovery import resume_sensor
from dataflow_assets.resources.ray import ray_resources
from dataflow_assets.resources.servings import SERVINGS_KEY, ServingsResource

_log = logging.getLogger(__name__)


def definitions_of(pipelines: Iterable[Pipeline], problems: Sequence[str] = ()) -> dg.Definitions:
    """The definitions of these pipelines, and an asset that tells the problems of others that are not there.

    Raises ConfigError for a pipeline that cannot be a graph of assets.
    """
    pipelines = list(pipelines)
    assets, jobs, sensors, schedules = [], [], [], []
    if problems:
        assets.append(_not_loaded(problems))
    for pipeline in pipelines:
        work = PipelineWork(pipeline)
        assets += pipeline_assets(work, pages=True)
        job = read_source_job(pipeline)
        running = run_job(pipeline)
        jobs += [
            job,
            running,
            pause_job(pipeline),
            resume_job(pipeline),
            failed_rows_job(work),
            retry_failed_job(work),
            put_back_job(work),
            export_job(work),
            profile_job(work),
            report_job(work),
            status_job(work),
            trace_job(work),
        ]
        sensors += [watch_sensor(work), resume_sensor(work, running)]
        schedules.append(daily_schedule(pipeline, job))
    sensors.append(run_failure_sensor(pipelines))
    root = dg.EnvVar(ROOT_VARIABLE).get_value(DEFAULT_ROOT) or DEFAULT_ROOT
    return dg.Definitions(
        assets=assets,
        jobs=jobs,
        sensors=sensors,
        schedules=schedules,
        resources={
            IO_MANAGER_KEY: StepFilesIOManager(root=root),
            SERVINGS_KEY: ServingsResource(),
            **ray_resources(pipelines),
        },
        executor=dg.in_process_executor,
    )


def _not_loaded(problems: Sequence[str]) -> dg.AssetSpec:
    """An asset that nothing makes, by which Dagster's pages show what is wrong with files of pipelines."""
    lines = "\n".join(f"    {line}" for problem in problems for line in problem.splitlines())
    return dg.AssetSpec(
        "pipelines_that_are_not_loaded",
        group_name="not_loaded",
        description=f"Mistakes in files of pipelines; the other pipelines are loaded.\n\n{lines}",
    )


def _loaded() -> dg.Definitions:
    """The definitions of all known pipelines; one with mistakes does not take the others away."""
    pipelines, problems = usable()
    for problem in problems:
        _log.warning("not loaded: %s", problem)
    return definitions_of(pipelines.values(), problems)


defs = _loaded()
