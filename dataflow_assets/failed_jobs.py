"""The Dagster job that tries a pipeline's failed rows again."""

import dagster as dg
from pydantic import Field

from dataflow_assets.failed_queue.retry import StepRetried, retry_failed
from dataflow_assets.failed_queue.selection import MAX_ATTEMPTS, Which
from dataflow_assets.io.step_files import cancelled_when_stopped
from dataflow_assets.pipeline.names import identifier
from dataflow_assets.pipeline_work import PipelineWork


class RetryFailed(dg.Config):
    """Which failed rows are tried again; no step and no class named means all.

    `parked` takes rows with `max_attempts` attempts or more as well.
    """

    step: str | None = None
    error_class: list[str] = Field(default_factory=list)
    parked: bool = False
    max_attempts: int = MAX_ATTEMPTS

    def which(self) -> Which:
        """The rows that are meant."""
        steps = [] if self.step is None else [self.step]
        return Which(steps, self.error_class, "in" if self.parked else "out", self.max_attempts)


def retry_failed_job(work: PipelineWork) -> dg.JobDefinition:
    """The job `<pipeline>_retry_failed`; what depends on the rows is redone in a run of its own."""
    pipeline = work.pipeline
    name = f"{identifier(pipeline.name)}_retry_failed"

    @dg.op(name=f"{name}_rows", pool=pipeline.name)
    def rows(context: dg.OpExecutionContext, config: RetryFailed) -> None:
        def tell(retried: StepRetried) -> None:
            for line in retried.lines():
                context.log.info(line)

        with cancelled_when_stopped(context.instance, context.dagster_run):
            retry_failed(work, context.instance, config.which(), tell=tell, run_id=context.run_id)

    @dg.job(name=name, description=f"Tries the failed rows of {pipeline.name} again.")
    def job() -> None:
        rows()

    return job
