"""The command's entry: its groups of commands, and how an error becomes words and an exit code."""

import gc
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn, TextIO

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
    out = sys.stdout
    try:
        return group.main(standalone_mode=False) or 0
    except DataflowError as error:
        print_error(str(error))
        return error.exit_code
    except SystemExit as error:  # ours never raise it
        if sys.stdout is not out:  # click took it away, for nobody reads any more
            return _nobody_reads(out)
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
        return _nobody_reads(out)


def _nobody_reads(out: TextIO) -> int:
    """Keeps Python from telling, at its end, of what could not be written; the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return 1
