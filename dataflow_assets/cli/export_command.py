"""`dataflow-assets export`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.export import export_step

if TYPE_CHECKING:
    from dataflow_assets.exports.writing import FolderKind


@click.command()
@pipeline_option
@click.option("--step", help="The step whose rows are exported [default: the last one].")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="FILE|FOLDER",
    help="The file, whose ending says the format; with --as the folder.",
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(("hf", "webdataset", "llamafactory")),
    help="A folder for Hugging Face, WebDataset or LLaMA-Factory.",
)
@click.option(
    "--column",
    "named",
    multiple=True,
    metavar="KEY=COLUMN",
    help="Which column is LLaMA-Factory's prompt, query, response, history, messages, system or tools.",
)
@click.option("--row-id", "with_row_id", is_flag=True, help="Keep the column row_id.")
@click.option("--allow-partial", is_flag=True, help="Export although rows failed or batches are missing.")
@click.option(
    "--for-spreadsheet",
    is_flag=True,
    help="CSV to look at in a spreadsheet: texts that begin as a formula does get an apostrophe.",
)
def export(
    pipeline: str,
    root: str | None,
    step: str | None,
    to: str,
    kind: "FolderKind | None",
    named: tuple[str, ...],
    with_row_id: bool,
    allow_partial: bool,
    for_spreadsheet: bool,
) -> None:
    """Write the rows of a step to one file (.jsonl, .json, .csv, .parquet, .pickle), or a folder (--as)."""
    work = work_of(pipeline, root)
    if kind is None:
        if named:
            raise ConfigError("`--column` goes with `--as llamafactory`")
        rows = export_step(work, step, Path(to), with_row_id, allow_partial, for_spreadsheet)
    else:
        from dataflow_assets.exports.writing import export_folder

        if for_spreadsheet:
            raise ConfigError("--for-spreadsheet is for CSV alone")
        columns = dict(map(_key_and_column, named))
        rows = export_folder(work, step, Path(to), kind, with_row_id, allow_partial, columns)
    print_line(f"{rows:,} rows in {to}")


def _key_and_column(text: str) -> tuple[str, str]:
    key, found, column = text.partition("=")
    if not found:
        raise ConfigError(f"--column {text!r} is no KEY=COLUMN")
    return key, column
