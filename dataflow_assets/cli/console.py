"""How the command prints: tables and lines in which the data's control characters are visible."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dataflow_assets.io.objects.places import url_of
from dataflow_assets.io.preview import visible
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.catalog import find_pipeline
from dataflow_assets.pipeline_work import PipelineWork

_PLAIN_WIDTH = 140
_NARROW = 80
_ANY_WIDTH = 10_000


def console() -> Console:
    """The console for standard output; wide where nobody looks, so that nothing is cut."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False, soft_wrap=True)


def a_person_looks() -> bool:
    """Whether standard output is a terminal that can be redrawn."""
    return sys.stdout.isatty() and not console().is_dumb_terminal


def kept_stream(stream: TextIO) -> TextIO:
    """The stream as it is now: Dagster puts files in the place of standard output and error in each step."""
    stream.flush()
    try:
        own = os.dup(stream.fileno())
    except (OSError, ValueError):  # no real file, as in a test
        return stream
    return os.fdopen(own, "w", encoding=stream.encoding, errors=stream.errors, buffering=1)


class KeptConsole(Console):
    """A console on a kept stream: its size is that of the stream's own terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(file=stream, highlight=False)

    @property
    def size(self) -> ConsoleDimensions:  # pyright: ignore[reportIncompatibleMethodOverride]  nobody sets it
        """Columns and lines, as they are now."""
        try:
            return ConsoleDimensions(*os.get_terminal_size(self.file.fileno()))
        except (OSError, ValueError):
            return super().size


def print_line(text: str, stream: TextIO | None = None) -> None:
    """One line on standard output or the stream, control characters of the data shown as escapes."""
    click.echo(visible(text), file=stream)
    (stream or sys.stdout).flush()


def print_error(text: str) -> None:
    """The lines of an error on standard error."""
    for line in text.splitlines() or [""]:
        click.echo(f"error: {visible(line)}", err=True)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """A table; the columns named in `right` are aligned right."""
    out = console()
    out.print(shown_table(headers, rows, right, out))


def shown_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str], out: Console
) -> RenderableType:
    """The table for a console; where that is narrow and has no room, a block of lines for each row."""
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    wide = out.options.update(width=_ANY_WIDTH)
    if out.width >= _NARROW or Measurement.get(out, wide, table).maximum <= out.width:
        return table
    return Group(*(Text(line) for row in cells for line in _block(headers, row)))


def _block(headers: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    """The first two cells of a row as a title, the others below it."""
    yield " ".join(row[:2])
    for header, cell in zip(headers[2:], row[2:], strict=True):
        yield f"  {header}: {cell}"


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
    """The path relative to the working folder where it is inside, the URL of a copy."""
    if url := url_of(path):
        return url
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
