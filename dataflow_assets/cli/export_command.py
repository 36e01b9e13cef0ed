"""`dataflow-assets export`."""

from pathlib import Path

import click

from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.export import export_step, exported_columns


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
@click.option(
    "--croissant",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.json",
    help="Write the file's Croissant metadata too, for catalogues of data sets.",
)
def export(
    pipeline: str,
    root: str | None,
    step: str | None,
    to: str,
    with_row_id: bool,
    allow_partial: bool,
    for_spreadsheet: bool,
    croissant: Path | None,
) -> None:
    """Write the rows of a step to one file: .jsonl, .json, .csv, .parquet or .pickle."""
    work, path = work_of(pipeline, root), Path(to)
    if croissant is not None:
        from dataflow_assets.versions.croissant import check_format

        check_format(path)
    rows = export_step(work, step, path, with_row_id, allow_partial, for_spreadsheet)
    print_line(f"{rows:,} rows in {to}")
    if croissant is not None:
        from dataflow_assets.versions.croissant import write_croissant

        name = step or work.pipeline.ordered_steps[-1].name
        write_croissant(croissant, work.pipeline, path, exported_columns(work, name, with_row_id), rows)
        print_line(f"metadata in {croissant}")
