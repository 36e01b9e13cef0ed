"""`dataflow-assets lock` and `diff`: how a data set came about, and what changed between two."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.cli.console import pipeline_option, print_line, print_table, shown_path, work_of
from dataflow_assets.cli.look_commands import print_json

if TYPE_CHECKING:
    from dataflow_assets.versions.lock import RunLock

_FILE = click.Path(dir_okay=False, path_type=Path)
_WIDEST = 60


@click.command()
@pipeline_option
@click.option("--to", type=_FILE, metavar="FILE", help="The lock file [default: PIPELINE.lock.json].")
def lock(pipeline: str, root: str | None, to: Path | None) -> None:
    """Write what decided the rows of a finished run, and what they were, to a lock file."""
    from dataflow_assets.exports.target import check_not_read
    from dataflow_assets.versions.lock import LOCK_SUFFIX, lock_of

    work = work_of(pipeline, root)
    path = to or Path(f"{work.pipeline.name}{LOCK_SUFFIX}")
    check_not_read(work, path)
    lock_of(work).write(path)
    print_line(f"{shown_path(path.absolute())}: {path.stat().st_size:,} bytes")


@click.command()
@click.argument("before", metavar="LOCK|PIPELINE")
@click.argument("after", metavar="LOCK|PIPELINE")
@click.option("--root", metavar="DIR", help="Where the files of a PIPELINE are [default: its root].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--exit-code", is_flag=True, help="End with 1 where something differs.")
@click.pass_context
def diff(
    context: click.Context, before: str, after: str, root: str | None, as_json: bool, exit_code: bool
) -> None:
    """Say what differs between two runs: lock files, or a pipeline as it is now."""
    from dataflow_assets.versions.differences import differences

    found = differences(_lock_at(before, root), _lock_at(after, root))
    if as_json:
        print_json([one._asdict() for one in found])
    elif found:
        cells = [(one.where, one.what, _short(one.before), _short(one.after)) for one in found]
        print_table(("where", "what", "before", "after"), cells)
    else:
        print_line("no difference")
    if exit_code and found:
        context.exit(1)


def _lock_at(place: str, root: str | None) -> "RunLock":
    """The lock in a file, or that of a pipeline as it is now; a note where its rows are older than that."""
    from dataflow_assets.versions.lock import is_finished, is_lock, plan_now, read_lock, with_rows

    if is_lock(Path(place)):
        return read_lock(Path(place))
    work = work_of(place, root)
    if not is_finished(work):
        click.echo(f"{work.pipeline.name}: not up to date; the rows are those of its last run", err=True)
    return with_rows(work, plan_now(work))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
