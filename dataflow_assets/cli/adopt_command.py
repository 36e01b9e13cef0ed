"""`adopt`: a cache folder or a pipeline file of DataFlow becomes a pipeline of ours."""

import os
from pathlib import Path

import click

from dataflow_assets.cli.console import print_line
from dataflow_assets.errors import ConfigError, StorageError


@click.command()
@click.argument("place", type=click.Path(path_type=Path), metavar="PIPELINE.py|CACHE_FOLDER")
@click.option(
    "--to", type=click.Path(path_type=Path), metavar="FILE", help="Write the pipeline here [NAME.yaml]."
)
@click.option("--class", "class_name", metavar="NAME", help="The pipeline's class, where a file has several.")
@click.option("--prefix", metavar="NAME", help="The file_name_prefix, where a cache folder has several.")
@click.option(
    "--step", type=click.IntRange(min=1), help="Go on from this step of the cache [the last whole one]."
)
@click.option(
    "--from-cache", is_flag=True, help="Let a pipeline file go on from what its cache folder holds."
)
def adopt(
    place: Path,
    to: Path | None,
    class_name: str | None,
    prefix: str | None,
    step: int | None,
    from_cache: bool,
) -> None:
    """Write a pipeline for what DataFlow (open-dataflow) made or would make; nothing is run or changed."""
    import yaml

    from dataflow_assets.moving.adopted import adopted_cache, adopted_file

    if place.is_dir():
        found = adopted_cache(place, prefix, step)
    elif place.suffix == ".py" and place.is_file():
        found = adopted_file(place, class_name, prefix, step, from_cache)
    else:
        raise ConfigError(f"{place} is neither a folder nor a .py file; expected one of DataFlow's")
    target = to or Path(f"{found.fields['name']}.yaml")
    source = found.fields["source"]
    assert isinstance(source, dict)
    if "path" in source:
        source["path"] = os.path.relpath(source["path"], target.parent)
    try:
        with open(target, "x", encoding="utf-8") as file:
            yaml.safe_dump(found.fields, file, sort_keys=False, allow_unicode=True, width=100)
    except FileExistsError:
        raise ConfigError(f"{target} exists and is left as it is; say another file by --to") from None
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}") from error
    for note in found.notes:
        print_line(note)
    print_line(f"{target}: look at it, then `dataflow-assets validate {target}`")
