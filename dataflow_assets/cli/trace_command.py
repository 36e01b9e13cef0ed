"""`dataflow-assets trace`."""

from dataclasses import asdict

import click

from dataflow_assets.cli.console import pipeline_option, print_line, work_of
from dataflow_assets.cli.look_commands import as_json


@click.command()
@pipeline_option
@click.argument("row_id", metavar="ROW_ID")
@as_json
def trace(pipeline: str, root: str | None, row_id: str, as_json: bool) -> None:
    """The life of one row: where it came from, what each step changed, and where it ended."""
    from dataflow_assets.failed_queue.rows_file import as_json as json_of
    from dataflow_assets.trace.life import life_of
    from dataflow_assets.trace.told import told_life

    work = work_of(pipeline, root)
    life = life_of(work, row_id)
    if as_json:
        click.echo(json_of(asdict(life)))
        return
    for told in told_life(work, life):
        print_line(told.what)
        for line in told.lines:
            print_line(f"  {line}")
