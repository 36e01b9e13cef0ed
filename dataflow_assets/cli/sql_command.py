"""`dataflow-assets sql`: questions to the steps of a pipeline, in SQL."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.cli.console import pipeline_option, print_line, print_table, work_of
from dataflow_assets.cli.look_commands import as_json
from dataflow_assets.errors import ConfigError
from dataflow_assets.io.preview import shown_value

if TYPE_CHECKING:
    from dataflow_assets.views.query import Result, Views

_SHOWN_ROWS = 50
_CELL_CHARS = 200
_SPOOLED_BYTES = 1 << 24


@click.command("sql")
@pipeline_option
@click.argument("query", required=False)
@click.option("--to", "to", metavar="FILE", help="Write all rows to a file; its ending says the format.")
@as_json
@click.option(
    "-n", "rows", default=_SHOWN_ROWS, show_default=True, type=click.IntRange(min=1), help="Rows to show."
)
@click.option(
    "--memory-mb",
    default=1024,
    show_default=True,
    type=click.IntRange(min=128),
    help="The most MiB that DuckDB holds; above it, temporary files.",
)
def sql_command(
    pipeline: str,
    root: str | None,
    query: str | None,
    to: str | None,
    as_json: bool,
    rows: int,
    memory_mb: int,
) -> None:
    """Ask the steps in DuckDB's SQL: `SELECT * FROM step`; without a query, list the views.

    There is a view for `source` and each step, and `<step>_rejected` and `<step>_failed`. It reads
    committed batches alone, and nothing else: no file, no setting.
    """
    from dataflow_assets.views.query import open_views

    if to is not None and as_json:
        raise ConfigError("--to and --json exclude each other; a FILE that ends in .json is JSON too")
    work = work_of(pipeline, root)
    if to is not None:
        from dataflow_assets.exports.target import check_target

        check_target(work, Path(to))
    with open_views(work, memory_mb) as views:
        if query is None:
            _list(views)
        elif to is not None:
            _write(views.ask(query), Path(to))
        elif as_json:
            _print_json(views.ask(query))
        else:
            _print(views.ask(query), rows)


def _list(views: "Views") -> None:
    print_table(
        ("view", "rows", "columns"),
        [
            (name, f"{view.rows:,}", ", ".join(f"{column} {kind}" for column, kind in view.columns.items()))
            for name, view in views.by_name.items()
        ],
        right=("rows",),
    )


def _print(result: "Result", most: int) -> None:
    found = result.first_rows(most + 1)
    rows = [["" if cell is None else _shown(cell) for cell in row] for row in found[:most]]
    print_table([shown_value(column.name) for column in result.columns], rows)
    if len(found) > most:
        print_line(f"the first {most:,} rows; -n shows more, --to FILE writes all")


def _shown(cell: object) -> str:
    return shown_value(cell if isinstance(cell, str) else str(cell), _CELL_CHARS)


def _print_json(result: "Result") -> None:
    """Prints all rows, or nothing where one cannot be written: they wait in a temporary file."""
    from dataflow_assets.exports.file import json_pieces

    with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as waiting:
        for piece in json_pieces(result.tables()):
            waiting.write(piece)
        waiting.seek(0)
        shutil.copyfileobj(waiting, sys.stdout.buffer)
    sys.stdout.flush()


def _write(result: "Result", to: Path) -> None:
    from dataflow_assets.batch import arrow_schema
    from dataflow_assets.exports.file import format_of, write_file

    rows = write_file(to, format_of(to), result.tables(), arrow_schema(result.schema))
    print_line(f"{rows:,} rows in {to}")
