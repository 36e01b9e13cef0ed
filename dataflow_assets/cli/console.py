"""How the command prints: tables and lines in which the data's control characters are visible."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dataflow_assets.io.preview import visible
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork

_PLAIN_WIDTH = 140


def console() -> Console:
    """The console for standard output; wide where nobody looks, so that nothing is cut."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False, soft_wrap=True)


def print_line(text: str) -> None:
    """One line on standard output, control characters of the data shown as escapes."""
    click.echo(visible(text))
    sys.stdout.flush()


def print_error(text: str) -> None:
    """The lines of an error on standard error."""
    for line in text.splitlines() or [""]:
        click.echo(f"error: {visible(line)}", err=True)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """A table; the columns named in `right` are aligned right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(str(cell))) for cell in row))
    console().print(table)


def pipeline_option(command: Callable[..., None]) -> Callable[..., None]:
    """`PIPELINE`: a name or a file, and `--root`."""
    command = click.option(
        "--root", metavar="DIR", help="Where the files are [default: the pipeline's root]."
    )(command)
    return click.argument("pipeline", metavar="PIPELINE|FILE")(command)


def work_of(pipeline: str, root: str | None) -> PipelineWork:
    """The pipeline of this name or file, bound to its files. Raises ConfigError."""
    found: Pipeline = find_pipeline(pipeline)
    return PipelineWork(found.with_changes(root=root) if root else found)


def shown_counts(counts: dict[str, int]) -> str:
    """`3 (2 too_short, 1 duplicate)`, or `0`."""
    total = sum(counts.values())
    if not total:
        return "0"
    return f"{total:,} ({', '.join(f'{count:,} {name}' for name, count in counts.items())})"


def shown_path(path: Path) -> str:
    """The path relative to the working folder where it is inside."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
