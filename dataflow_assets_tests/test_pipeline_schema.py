"""The JSON Schema for editors takes what loads and refuses typos."""

import copy
import json
from importlib.resources import files

import jsonschema
import pytest
import yaml

from dataflow_assets.pipeline.schema import json_schema
from dataflow_assets_tests import pipeline_operators as pipeline_operators

GOOD = {
    "name": "four",
    "source": {"path": "in.jsonl"},
    "batch_rows": 10,
    "steps": [{"name": "a", "type": "made_chunk", "params": {"chunk_size": 5, "mode": "soft"}}],
}


def _is_valid(document: object) -> bool:
    return jsonschema.Draft202012Validator(json_schema()).is_valid(document)


def _with(path: str, value: object) -> dict:
    document = copy.deepcopy(GOOD)
    *parents, last = path.split("/")
    inner = document
    for name in parents:
        inner = inner[int(name) if name.isdigit() else name]  # pyright: ignore
    inner[last] = value
    return document


def test_the_schema_is_one_and_is_json():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert json.loads(json.dumps(json_schema()))["title"] == "Pipeline"


def test_shipped_pipelines_are_valid():
    for file in (files("dataflow_assets") / "pipelines").iterdir():
        if file.name.endswith(".yaml"):
            jsonschema.validate(yaml.safe_load(file.read_text()), json_schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("batch_rows", None),
        ("batch_rows", "${ROWS}"),
        ("steps/0/params/chunk_size", "${SIZE:-5}"),
        ("steps/0/type", "my_module:Mine"),
        ("steps/0/depends_on", ["source"]),
        ("prefix", "p"),
    ],
)
def test_what_loads_is_valid(path, value):
    assert _is_valid(GOOD) and _is_valid(_with(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("batchrows", 5),
        ("batch_rows", "5"),
        ("batch_rows", 0),
        ("name", "Four"),
        ("format", "xlsx"),
        ("steps", []),
        ("source/typo", 1),
        ("steps/0/typ", "x"),
        ("steps/0/type", "made_chnk"),
        ("steps/0/params/chunksize", 5),
        ("steps/0/params/mode", "medium"),
        ("steps/0/params", {}),
    ],
)
def test_a_typo_is_not_valid(path, value):
    assert not _is_valid(_with(path, value))


def test_params_that_are_needed_are_needed():
    assert not _is_valid({**GOOD, "steps": [{"name": "a", "type": "made_chunk"}]})
