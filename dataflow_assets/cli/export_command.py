"""`dataflow-assets export`."""

from collections.abc import Sequence
from pathlib import Path

import click

from dataflow_assets.append_export import append_step
from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.clickhouse.address import SCHEME, Address
from dataflow_assets.errors import ConfigError
from dataflow_assets.export import export_step
from dataflow_assets.pipeline_work import PipelineWork


@click.command()
@pipeline_option
@click.option("--step", help="The step whose rows are exported [default: the last one].")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="FILE|URL",
    help="A file, whose ending says the format, or clickhouse://…",
)
@click.option(
    "--append", is_flag=True, help="Append the batches that a .jsonl or .csv file does not have yet."
)
@click.option("--row-id", "with_row_id", is_flag=True, help="Keep the column row_id.")
@click.option("--allow-partial", is_flag=True, help="Export although rows failed or batches are missing.")
@click.option(
    "--for-spreadsheet",
    is_flag=True,
    help="CSV to look at in a spreadsheet: texts that begin as a formula does get an apostrophe.",
)
@click.option(
    "--vector", "vectors", multiple=True, metavar="COLUMN", help="ClickHouse: a new table has Array(Float32)."
)
def export(
    pipeline: str,
    root: str | None,
    step: str | None,
    to: str,
    append: bool,
    with_row_id: bool,
    allow_partial: bool,
    for_spreadsheet: bool,
    vectors: tuple[str, ...],
) -> None:
    """Write the rows of a step to one file: .jsonl, .json, .csv, .parquet or .pickle; or to a table.

    The file is written whole, or with --append grows by the batches that are new; its journal beside it
    says what is in it.

    A table of ClickHouse or MyScale (clickhouse://user@host:port/database/table) is brought up to the
    step: what it holds already is not sent again.
    """
    if to.startswith(SCHEME):
        _export_to_clickhouse(work_of(pipeline, root), step, to, allow_partial, vectors)
        return
    if vectors:
        raise ConfigError("--vector is for a table of ClickHouse; a file has the lists as they are")
    if append:
        grown = append_step(
            work_of(pipeline, root), step, Path(to), with_row_id, allow_partial, for_spreadsheet
        )
        print_line(
            f"{grown.rows:,} rows of {grown.batches:,} batches added to {to}, {grown.rows_in_file:,} in all"
        )
        return
    rows = export_step(work_of(pipeline, root), step, Path(to), with_row_id, allow_partial, for_spreadsheet)
    print_line(f"{rows:,} rows in {to}")


def _export_to_clickhouse(
    work: PipelineWork, step: str | None, url: str, allow_partial: bool, vectors: Sequence[str]
) -> None:
    from dataflow_assets.clickhouse.sink import export_to_clickhouse

    sent = export_to_clickhouse(work, step, url, allow_partial, vectors)
    print_line(
        f"{sent.rows:,} rows in {Address.of(url)}: {sent.batches_sent:,} batches sent, "
        f"{sent.batches_kept:,} as they were, {sent.rows_deleted:,} rows of before deleted"
    )
