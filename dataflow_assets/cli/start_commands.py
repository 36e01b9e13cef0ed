"""Commands that begin something: init, new operator, new pipeline, schema."""

import importlib.util
import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

import click
from pydantic import TypeAdapter, ValidationError

from dataflow_assets.cli.console import print_line
from dataflow_assets.cli.look_commands import print_json
from dataflow_assets.errors import ConfigError, StorageError
from dataflow_assets.home import ensure_home
from dataflow_assets.operators.registry import operators
from dataflow_assets.pipeline.catalog import place_of_known
from dataflow_assets.pipeline.names import FolderName
from dataflow_assets.pipeline.problems import printable
from dataflow_assets.pipeline.schema import json_schema

_MODULE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@click.command()
def init() -> None:
    """Make a Dagster home here, so that `dagster dev` and all other commands use the same state."""
    print_line(f"Dagster home: {ensure_home(Path.cwd())}")


@click.group()
def new() -> None:
    """Make a working scaffold with a test."""


@new.command("operator")
@click.argument("name")
def new_operator(name: str) -> None:
    """Make NAME.py, an operator, and test_NAME.py here; no file is ever overwritten."""
    targets = {f"{name}.py": "operator.py", f"test_{name}.py": "test_operator.py"}
    _refuse_existing(targets)
    _check_module_name(name)
    class_name = "".join(part.capitalize() for part in name.split("_"))
    _write(targets, {"name": name, "class_name": class_name})
    print_line(f"In a pipeline file beside it:  type: {name}:{class_name}")
    print_line(f"The test:  python -m pytest test_{name}.py")


@new.command("pipeline")
@click.argument("name")
def new_pipeline(name: str) -> None:
    """Make NAME.yaml, its input NAME.jsonl and test_NAME.py here; no file is ever overwritten."""
    targets = {
        f"{name}.yaml": "pipeline.yaml",
        f"{name}.jsonl": "pipeline.jsonl",
        f"test_{name}.py": "test_pipeline.py",
    }
    _refuse_existing(targets)
    _check_pipeline_name(name)
    _write(targets, {"name": name, "function": name.replace("-", "_")})
    print_line(f"Run it:  dataflow-assets run {name}.yaml")
    print_line(f"The test:  python -m pytest test_{name}.py")


def _check_module_name(name: str) -> None:
    """Raises ConfigError for a name that Python cannot import, or that would hide what it imports now."""
    if not _MODULE_NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} cannot name a Python file and an operator; expected 1 to 64 of a-z, 0-9 and _, "
            "first a letter, and no word of Python's"
        )
    if name in operators():
        raise ConfigError(f"there is an operator {name!r} already; take another name")
    if importlib.util.find_spec(name) is not None:
        raise ConfigError(
            f"there is a Python module {name!r} already, which {name}.py would hide; take another name"
        )


def _check_pipeline_name(name: str) -> None:
    try:
        TypeAdapter(FolderName).validate_python(name)
    except ValidationError as error:
        raise ConfigError(f"the name {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    known = place_of_known(name)
    if known is not None:
        raise ConfigError(f"there is a pipeline {name!r} already: {printable(known)}; take another name")


def _refuse_existing(targets: Mapping[str, str]) -> None:
    for target in targets:
        if Path(target).exists():
            raise ConfigError(f"{target} exists and is left as it is; nothing was written, take another name")


def _write(targets: Mapping[str, str], words: Mapping[str, str]) -> None:
    templates = files("dataflow_assets") / "scaffolds" / "templates"
    for target, template in targets.items():
        text = Template((templates / f"{template}.txt").read_text("utf-8")).substitute(words)
        try:
            with open(target, "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise StorageError(f"{target} cannot be written: {error.strerror}") from error
        print_line(target)


@click.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors."""
    print_json(json_schema())
