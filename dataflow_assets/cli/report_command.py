"""`dataflow-assets report`."""

from pathlib import Path

import click

from dataflow_assets.cli.console import pipeline_option, print_line, shown_path, work_of
from dataflow_assets.errors import ConfigError

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@pipeline_option
@click.option("--to", type=_FILE, metavar="FILE.html", help="The page, one file that needs nothing else.")
@click.option("--card", type=_FILE, metavar="FILE.md", help="The data card, for a Hugging Face data set.")
def report(pipeline: str, root: str | None, to: Path | None, card: Path | None) -> None:
    """Write what the steps did to the data as one HTML page, and as a data card in Markdown."""
    if to is None and card is None:
        raise ConfigError("neither --to FILE.html nor --card FILE.md is given; say what to write")
    from dataflow_assets.report.writing import write_report

    for path in write_report(work_of(pipeline, root), to, card):
        print_line(f"{shown_path(path.absolute())}: {path.stat().st_size:,} bytes")
