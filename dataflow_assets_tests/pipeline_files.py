"""Writes pipeline files for tests, and gives back what loading them says."""

from pathlib import Path

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets_tests import pipeline_operators as pipeline_operators

HEAD = "name: four\nsource: {path: in.jsonl}\n"
STEP = "steps:\n  - {name: one, type: made_suffix}\n"


def load(folder: Path, text: str | bytes, name: str = "p.yaml") -> Pipeline:
    """The pipeline of a file with this text."""
    file = folder / name
    file.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    return load_pipeline(file)


def mistakes(folder: Path, text: str | bytes, name: str = "p.yaml") -> list[str]:
    """The lines of the ConfigError that loading this text raises, the folder taken off; [] for none."""
    try:
        load(folder, text, name)
    except ConfigError as error:
        return [line.replace(f"{folder}/", "") for line in error.problems]
    return []
