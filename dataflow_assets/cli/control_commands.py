"""`dataflow-assets pause` and `dataflow-assets resume`."""

import time
from pathlib import Path

import click

from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.cli.run_command import run
from dataflow_assets.control import is_locked
from dataflow_assets.errors import RunError
from dataflow_assets.home import dagster_errors, open_instance
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.task_state import TaskStore, new_pause

_JUST_BEGAN_S = 2
_NOT_WITH_RESUME = frozenset(["fresh", "dry_run"])


@click.command()
@pipeline_option
@click.option("--reason", default="", metavar="TEXT", help="Why; shown by status and by whatever is refused.")
def pause(pipeline: str, root: str | None, reason: str) -> None:
    """Pause a pipeline: its run stops after the batches and calls in hand, none begins until `resume`."""
    work = work_of(pipeline, root)
    store = _store(work)
    asked = new_pause(work.pipeline, reason)
    with dagster_errors(store.instance.root_directory):
        holds = store.ask_pause(asked)
        is_unseen = _is_unseen(store)
    if is_unseen:
        raise RunError(
            f"{work.pipeline.name} is held by a process that the Dagster home "
            f"{store.instance.root_directory} knows no run of: one with another Dagster "
            "home does not see the pause, which is kept here; say `pause` in the folder where it was "
            "started, or with its DAGSTER_HOME"
        )
    if holds is not asked:
        print_line(f"nothing changed: {holds}")
    elif is_locked(work.layout.folder):
        print_line(f"{work.pipeline.name} was asked to pause; its run ends after what is in hand")
    else:
        print_line(f"{work.pipeline.name} is paused; `dataflow-assets resume {asked.pipeline}` goes on")


def _is_unseen(store: TaskStore) -> bool:
    """Whether a process holds the pipeline whose run this home does not know, not even after a moment.

    A run has the lock before it says that it runs; `put-back` has it for a moment and is no run.
    """
    end = time.monotonic() + _JUST_BEGAN_S
    while is_locked(store.folder) and store.left_running() is None:
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


@click.command()
@pipeline_option
def flush(pipeline: str, root: str | None) -> None:
    """Have a run with `write: lazy` commit, after the batch in hand, what it holds in memory."""
    work = work_of(pipeline, root)
    name = work.pipeline.name
    if not is_locked(work.layout.folder):
        print_line(f"{name} is not running: nothing is held in memory")
        return
    if work.hold_bytes is None:
        print_line(
            f"{name} commits each batch when it is made (`write: immediate`): nothing is held in memory"
        )
        return
    store = _store(work)
    with dagster_errors(store.instance.root_directory):
        store.ask_flush()
    print_line(f"{name} was asked to commit what it holds in memory; `status` says how much that is")


def resume_command() -> click.Command:
    """`resume`: `run` after lifting the pause, with its options but those that would begin anew."""
    options = [option for option in run.params if option.name not in _NOT_WITH_RESUME]
    help = "Lift the pause of a pipeline and go on with it, as `run` does, whether it was paused or not."
    return click.Command("resume", callback=click.pass_context(_resume), params=options, help=help)


def _resume(context: click.Context, pipeline: str, root: str | None, **options: object) -> None:
    from dataflow_assets.running_task import resuming

    work = work_of(pipeline, root)
    with resuming(_store(work), print_line) as lifted:
        if lifted is not None:
            print_line(f"{work.pipeline.name} was paused by {lifted.who} since {lifted.when}; going on")
        context.invoke(run, pipeline=pipeline, root=root, **options)


def _store(work: PipelineWork) -> TaskStore:
    return TaskStore(open_instance(Path.cwd()), work.layout.folder)
