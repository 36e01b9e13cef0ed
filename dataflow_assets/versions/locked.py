"""A run that must be the one of its lock: refused where it cannot be, checked where it was."""

from dataflow_assets.errors import ConfigError, NotReproduced
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.versions.differences import differences
from dataflow_assets.versions.lock import RunLock, lock_of, plan_now


def refuse_other_plan(work: PipelineWork, lock: RunLock, file: str) -> None:
    """Raises ConfigError with all that differs between the lock and what would be run now."""
    found = differences(lock.plan, plan_now(work))
    if found:
        raise ConfigError(
            [f"{work.pipeline.redacted(str(one))} (locked by {file})" for one in found]
            + ["nothing was run; bring back what was locked, or run without --locked"]
        )


def refuse_other_rows(work: PipelineWork, lock: RunLock, file: str) -> None:
    """Raises NotReproduced where the run made other rows than its lock says."""
    found = differences(lock, lock_of(work))
    if found:
        lines = "\n".join(work.pipeline.redacted(str(one)) for one in found)
        raise NotReproduced(
            f"the run made other rows than {file} says, from the same inputs, parameters and versions: a "
            f"model answered otherwise, or a step is not a function of its inputs\n{lines}"
        )
