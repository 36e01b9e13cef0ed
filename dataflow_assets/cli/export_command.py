"""`dataflow-assets export`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.clickhouse.address import SCHEME, Address
from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.append import append_step
from dataflow_assets.exports.file import export_step
from dataflow_assets.exports.target import check_target
from dataflow_assets.finished_step import finished_step
from dataflow_assets.pipeline_work import PipelineWork

if TYPE_CHECKING:
    from dataflow_assets.exports.writing import FolderKind


@click.command()
@pipeline_option
@click.option("--step", help="The step whose rows are exported [default: the last one].")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="FILE|FOLDER|URL",
    help="A file, whose ending says the format; with --as a folder; or clickhouse://…",
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
    kind: "FolderKind | None",
    named: tuple[str, ...],
    append: bool,
    with_row_id: bool,
    allow_partial: bool,
    for_spreadsheet: bool,
    vectors: tuple[str, ...],
    croissant: Path | None,
) -> None:
    """Write the rows of a step to one file, to a folder that a training library reads, or to a table.

    A file (.jsonl, .json, .csv, .parquet, .pickle) is written whole, or with --append grows by the batches
    that are new; its journal beside it says what is in it.

    A table of ClickHouse or MyScale (clickhouse://user@host:port/database/table) is brought up to the
    step: what it holds already is not sent again.
    """
    is_table, is_file = to.startswith(SCHEME), kind is None and not to.startswith(SCHEME)
    _refuse(
        {
            "--as": is_table and kind is not None,
            "--column": bool(named) and kind != "llamafactory",
            "--append": append and not is_file,
            "--for-spreadsheet": for_spreadsheet and not is_file,
            "--vector": bool(vectors) and not is_table,
            "--croissant": croissant is not None and (not is_file or append),
        },
        to,
    )
    work = work_of(pipeline, root)
    if is_table:
        _export_to_clickhouse(work, step, to, allow_partial, vectors)
    elif kind is not None:
        from dataflow_assets.exports.writing import export_folder

        columns = dict(map(_key_and_column, named))
        rows = export_folder(work, step, Path(to), kind, with_row_id, allow_partial, columns)
        print_line(f"{rows:,} rows in {to}")
    elif append:
        grown = append_step(work, step, Path(to), with_row_id, allow_partial, for_spreadsheet)
        print_line(
            f"{grown.rows:,} rows of {grown.batches:,} batches added to {to}, {grown.rows_in_file:,} in all"
        )
    else:
        _export_file(work, step, Path(to), with_row_id, allow_partial, for_spreadsheet, croissant)


def _refuse(misplaced: dict[str, bool], to: str) -> None:
    wrong = [option for option, is_misplaced in misplaced.items() if is_misplaced]
    if wrong:
        where = Address.of(to) if to.startswith(SCHEME) else to
        raise ConfigError(
            f"{', '.join(wrong)} says nothing of what is written to {where}; --append, --for-spreadsheet and "
            "--croissant are for one file, --column for --as llamafactory, --vector for clickhouse://…"
        )


def _export_file(
    work: PipelineWork,
    step: str | None,
    to: Path,
    with_row_id: bool,
    allow_partial: bool,
    for_spreadsheet: bool,
    croissant: Path | None,
) -> None:
    if croissant is not None:
        from dataflow_assets.versions.croissant import check_format

        check_format(to)
        check_target(work, croissant)
        if croissant.resolve() == to.resolve():
            raise ConfigError(f"--croissant names the file of the rows, {to}; give it a name of its own")
    rows = export_step(work, step, to, with_row_id, allow_partial, for_spreadsheet)
    print_line(f"{rows:,} rows in {to}")
    if croissant is not None:
        from dataflow_assets.versions.croissant import write_croissant

        columns = finished_step(work, step, allow_partial=True).columns(with_row_id)
        write_croissant(croissant, work.pipeline, to, columns, rows)
        print_line(f"metadata in {croissant}")


def _export_to_clickhouse(
    work: PipelineWork, step: str | None, url: str, allow_partial: bool, vectors: Sequence[str]
) -> None:
    from dataflow_assets.clickhouse.sink import export_to_clickhouse

    sent = export_to_clickhouse(work, step, url, allow_partial, vectors)
    print_line(
        f"{sent.rows:,} rows in {Address.of(url)}: {sent.batches_sent:,} batches sent, "
        f"{sent.batches_kept:,} as they were, {sent.rows_deleted:,} rows of before deleted"
    )


def _key_and_column(text: str) -> tuple[str, str]:
    key, found, column = text.partition("=")
    if not found:
        raise ConfigError(f"--column {text!r} is no KEY=COLUMN")
    return key, column
