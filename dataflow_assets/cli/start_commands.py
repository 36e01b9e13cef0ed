"""Commands that begin something: init, new operator, new pipeline, schema."""

from pathlib import Path

import click

from dataflow_assets.cli.console import print_line
from dataflow_assets.cli.look_commands import print_json
from dataflow_assets.home import ensure_home
from dataflow_assets.pipeline_schema import json_schema


@click.command()
def init() -> None:
    """Make a Dagster home here, so that `dagster dev` and all other commands use the same state."""
    print_line(f"Dagster home: {ensure_home(Path.cwd())}")


@click.group()
def new() -> None:
    """Make a working scaffold with a test."""


@click.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors."""
    print_json(json_schema())
