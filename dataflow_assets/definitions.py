"""The wiring of this deployment: every known pipeline, the IO manager, jobs, sensors and schedules."""

from collections.abc import Iterable

import dagster as dg

from dataflow_assets.assets import IO_MANAGER_KEY, pipeline_assets
from dataflow_assets.automation import daily_schedule, read_source_job, watch_sensor
from dataflow_assets.failed_jobs import retry_failed_job
from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets.jobs import pause_job, resume_job
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.catalog import catalog
from dataflow_assets.pipeline_work import DEFAULT_ROOT, ROOT_VARIABLE, PipelineWork
from dataflow_assets.resources.ray import ray_resources
from dataflow_assets.resources.servings import SERVINGS_KEY, ServingsResource


def definitions_of(pipelines: Iterable[Pipeline]) -> dg.Definitions:
    """The definitions of these pipelines. Raises ConfigError with all mistakes of all files."""
    pipelines = list(pipelines)
    assets, jobs, sensors, schedules = [], [], [], []
    for pipeline in pipelines:
        work = PipelineWork(pipeline)
        assets += pipeline_assets(work, pages=True)
        job = read_source_job(pipeline)
        jobs += [job, pause_job(pipeline), resume_job(pipeline), retry_failed_job(work)]
        sensors.append(watch_sensor(work))
        schedules.append(daily_schedule(pipeline, job))
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


defs = definitions_of(catalog().values())
