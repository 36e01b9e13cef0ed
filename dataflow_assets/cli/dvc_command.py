"""`dataflow-assets dvc`."""

from pathlib import Path

import click

from dataflow_assets.cli.console import print_line, shown_path
from dataflow_assets.pipeline.catalog import find_pipeline


@click.command()
@click.argument("pipeline", metavar="FILE")
@click.option("--root", metavar="DIR", help="Where the results are [default: the pipeline's root].")
@click.option("--allow-failed", is_flag=True, help="The stage is done although rows wait in _failed.")
def dvc(pipeline: str, root: str | None, allow_failed: bool) -> None:
    """Write the stage of a pipeline to dvc.yaml here, for `dvc repro`, `dvc push` and `dvc pull`."""
    from dataflow_assets.pipeline_work import PipelineWork
    from dataflow_assets.versions.dvc import DVC_FILE, stage_of, write_stage

    found = find_pipeline(pipeline)
    work = PipelineWork(found.with_changes(root=root) if root else found)
    path = Path(DVC_FILE)
    write_stage(path, found.name, stage_of(work, Path.cwd(), allow_failed))
    print_line(f"{shown_path(path.absolute())}: stage {found.name}; `dvc repro {found.name}` runs it")
