"""`dataflow-assets export`."""

from pathlib import Path

import click

from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.export import export_step


@click.command()
@pipeline_option
@click.option("--step", help="The step whose rows are exported [default: the last one].")
@click.option("--to", "to", required=True, metavar="FILE", help="The file; its ending says the format.")
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
    with_row_id: bool,
    allow_partial: bool,
    for_spreadsheet: bool,
) -> None:
    """Write the rows of a step to one file: .jsonl, .json, .csv, .parquet or .pickle."""
    rows = export_step(work_of(pipeline, root), step, Path(to), with_row_id, allow_partial, for_spreadsheet)
    print_line(f"{rows:,} rows in {to}")
