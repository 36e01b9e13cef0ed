"""The sensor that goes on with a pipeline whose run died or failed; off at first."""

from dataclasses import asdict, dataclass

import dagster as dg
import orjson
from dagster import DagsterInstance
from dagster._core.storage.tags import RUN_KEY_TAG

from dataflow_assets.control import is_locked
from dataflow_assets.jobs.launching import job_name
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.planning import plan_of
from dataflow_assets.task_state import LAUNCHED_BY, TaskState, read_state

MAX_RESUMES = 3
_LOOK_EVERY_S = 30
_UNENDED = (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)


@dataclass(frozen=True)
class Resumes:
    """How often the pipeline was gone on with since it was last done, and after which end the last time."""

    count: int = 0
    after: str = ""

    @classmethod
    def of_cursor(cls, cursor: str | None) -> "Resumes":
        """What the sensor noted at its last tick."""
        return cls(**orjson.loads(cursor)) if cursor else cls()

    def as_cursor(self) -> str:
        """The note for the next tick."""
        return orjson.dumps(asdict(self)).decode()


def resume_sensor(work: PipelineWork, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Launches `job` when the pipeline's last run died with its process or failed, and batches are missing.

    At most three times until the pipeline is done; not while it is paused. Runs that Dagster still
    calls started, though nobody is alive, are marked as canceled.
    """
    pipeline = work.pipeline

    @dg.sensor(
        name=job_name(pipeline, "resume_after_crash"),
        job=job,
        description=f"Goes on with {pipeline.name} when its run died or failed, at most {MAX_RESUMES} times "
        "until it is done.",
        minimum_interval_seconds=_LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
    )
    def resume_after_crash(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        before = Resumes.of_cursor(context.cursor)
        found, after = looked_after(work, context.instance, before)
        context.update_cursor(after.as_cursor())
        return dg.SkipReason(found) if isinstance(found, str) else dg.SensorResult(run_requests=[found])

    return resume_after_crash


def looked_after(
    work: PipelineWork, instance: DagsterInstance, before: Resumes
) -> tuple[dg.RunRequest | str, Resumes]:
    """The run that the pipeline needs, or why there is none; and the note for the next look."""
    name = work.pipeline.name
    if is_locked(work.layout.folder):
        return f"{name} is being run", before
    state = read_state(instance, work)
    if state is None:
        return f"{name} was never run", Resumes()
    if state.state == "paused":
        return f"{name} is paused: {state.why or state.cause}", before
    if state.state == "done":
        return f"{name} is done", Resumes()
    if state.cause not in ("killed", "error"):
        return f"{name} was ended by {state.who or 'a person'}, who may go on with it", before
    return _next(work, instance, state, before)


def _next(
    work: PipelineWork, instance: DagsterInstance, state: TaskState, before: Resumes
) -> tuple[dg.RunRequest | str, Resumes]:
    name, end = work.pipeline.name, f"{state.when} {state.cause} {state.step} {state.batch}"
    if state.cause == "killed":
        _end_dead_run(instance, state)
    if before.after == end and not _has_ended(instance, _run_key(end, before.count)):
        return f"{name}: a run was asked for after its last one ended, and has not begun", before
    if nothing_to_do := _nothing_to_do(work):
        return nothing_to_do, before
    if before.count >= MAX_RESUMES:
        return (
            f"{name} was gone on with {before.count} times and its run {_ended(state)} each time; look at "
            f"{state.why!r}, then launch {job_name(work.pipeline, 'run')}"
        ), before
    count = before.count + 1
    tags = {"dataflow/resume": f"{count} of {MAX_RESUMES}"}
    return dg.RunRequest(run_key=_run_key(end, count), tags=tags), Resumes(count, end)


def _run_key(end: str, count: int) -> str:
    return f"resume {end} {count}"


def _has_ended(instance: DagsterInstance, run_key: str) -> bool:
    """Whether the run that was asked for with this key is over: it failed before it began its task."""
    runs = instance.get_runs(dg.RunsFilter(tags={RUN_KEY_TAG: run_key}), limit=1)
    return bool(runs) and runs[0].is_finished


def _ended(state: TaskState) -> str:
    return "died" if state.cause == "killed" else "failed"


def _nothing_to_do(work: PipelineWork) -> str | None:
    """Why another run would make nothing: all is there, or blocking checks hold what is missing."""
    manifest = work.manifest()
    if manifest is None:
        return None
    plan = plan_of(work, work.pipeline.ordered_steps, manifest.batches)
    if plan.names:
        return None
    return "; ".join(map(str, plan.gates)) or f"{work.pipeline.name} has no batch to make"


def _end_dead_run(instance: DagsterInstance, state: TaskState) -> None:
    """Marks the run of a dead process, and that of the job which began it, as canceled.

    As started they would hold the pipeline's queue.
    """
    run = instance.get_run_by_id(state.run_id) if state.run_id else None
    job = None if run is None else instance.get_run_by_id(run.tags.get(LAUNCHED_BY, ""))
    for each in (run, job):
        if each is not None and each.status in _UNENDED:
            instance.report_run_canceled(each, message=f"{state.why}; what it committed is kept")
