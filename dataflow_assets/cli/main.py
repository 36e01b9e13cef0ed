"""The command's entry: its groups of commands, and how an error becomes words and an exit code."""

import gc
import os
import select
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import click

from dataflow_assets.cli.adopt_command import adopt
from dataflow_assets.cli.console import print_error, print_line
from dataflow_assets.cli.control_commands import flush, pause, resume_command
from dataflow_assets.cli.corpus_commands import corpus_group
from dataflow_assets.cli.dvc_command import dvc
from dataflow_assets.cli.export_command import export
from dataflow_assets.cli.failed_commands import failed, put_back, retry_failed
from dataflow_assets.cli.ledger_commands import ledger_group
from dataflow_assets.cli.lock_commands import diff, lock
from dataflow_assets.cli.look_commands import list_pipelines, sample, status, validate
from dataflow_assets.cli.operator_commands import list_operators
from dataflow_assets.cli.profile_command import profile_command
from dataflow_assets.cli.report_command import report
from dataflow_assets.cli.run_command import run
from dataflow_assets.cli.sql_command import sql_command
from dataflow_assets.cli.start_commands import init, new, schema
from dataflow_assets.cli.trace_command import trace
from dataflow_assets.errors import DataflowError, said_by

_EPILOG = """Exit codes: 0 all done; 1 the run failed; 2 a mistake in configuration, input or usage, nothing
was run; 3 stopped, the same command goes on, or paused, `resume` goes on; 5 done, but rows wait in the
failed queue."""


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        try:
            print_line(f"dataflow-assets {version('dataflow_assets')}")
        except PackageNotFoundError:
            print_line("dataflow-assets, not installed: run from its source")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it."
)
def group() -> None:
    """Make LLM training data in steps that can be killed at any moment and lose nothing."""


for command in (
    run,
    pause,
    resume_command(),
    flush,
    status,
    validate,
    list_pipelines,
    list_operators,
    sample,
    profile_command,
    trace,
    report,
    export,
    lock,
    diff,
    dvc,
    sql_command,
    ledger_group,
    corpus_group,
    failed,
    retry_failed,
    put_back,
    init,
    new,
    adopt,
    schema,
):
    group.add_command(command)


def main() -> NoReturn:
    """Runs the command and ends the process with its exit code."""
    gc.enable()
    sys.exit(_code())


def _code() -> int:
    """Runs the command and tells its error; the exit code."""
    try:
        return group.main(standalone_mode=False) or 0
    except DataflowError as error:
        print_error(str(error))
        return error.exit_code
    except SystemExit as error:  # ours never raise it, click and rich do where nobody reads
        if _nobody_reads(error):
            return 1
        print_error(f"code of the pipeline ended the command: {said_by(error)}; raise an error there instead")
        return 1
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        print_error("interrupted; what was committed is kept")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _nobody_reads(error: SystemExit) -> bool:
    """Whether the end came because the output goes to a command that has ended, as `head` does."""
    if isinstance(error.__context__, BrokenPipeError):  # of rich, which has turned the output away by now
        return True
    poll = select.poll()
    poll.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
