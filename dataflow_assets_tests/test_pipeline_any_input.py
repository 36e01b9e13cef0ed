"""Whatever a file holds, loading it gives a pipeline or a ConfigError."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.columns import check_columns
from dataflow_assets_tests.pipeline_files import load

settings.register_profile("files", suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
ANY = settings(settings.get_profile("files"), max_examples=200)

WORDS = [
    "name",
    "source",
    "path",
    "steps",
    "type",
    "params",
    "depends_on",
    "batch_rows",
    "root",
    "workers",
    "a",
    "b",
]
WORDS += [
    "made_suffix",
    "made_chunk",
    "made_answer",
    "chunk_size",
    "overlap",
    "column",
    "text",
    "row_id",
    "x",
    "format",
]
WORDS += [
    "${HOME}",
    "${NO}",
    "$${",
    "0123",
    "1e999",
    "yes",
    "&x",
    "*x",
    "<<",
    "!!str",
    "---",
    "...",
    "|",
    ">",
    "?",
    "\t",
]
words = st.sampled_from(WORDS)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | words,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=20,
)
names = st.sampled_from("abc") | values
steps = st.fixed_dictionaries(
    {
        "name": names,
        "type": st.sampled_from(["made_suffix", "made_chunk", "made_answer", "made_shape"]) | values,
    },
    optional={
        "params": st.dictionaries(words, values, max_size=3) | values,
        "depends_on": st.lists(st.sampled_from(["a", "b", "c", "source"]), max_size=3) | values,
        "workers": values,
        "chunk_rows": values,
        "replicas": values,
        "num_gpus_per_replica": values,
        "resources": values,
    },
)
pipelines = st.fixed_dictionaries(
    {
        "name": st.just("p") | values,
        "source": st.just({"path": "x"}) | values,
        "steps": st.lists(steps, max_size=4),
    },
    optional={
        name: values for name in ["batch_rows", "batch_bytes", "format", "root", "prefix", "allow_pickle"]
    },
)
yaml_texts = st.lists(
    st.text(max_size=8) | words | st.sampled_from(list(": -\n[]{},'\"#%@")), max_size=40
).map("".join)


def _tried(folder, text: str | bytes, name: str) -> None:
    """Loads the text; whatever happens must be a pipeline or a ConfigError that can be shown."""
    try:
        check_columns(load(folder, text, name), {"text": "string"})
    except ConfigError as error:
        assert error.problems and all(line.isprintable() for line in error.problems)


@ANY
@given(text=yaml_texts)
def test_any_yaml_text(tmp_path, text):
    _tried(tmp_path, text, "p.yaml")


@ANY
@given(content=st.binary(max_size=60))
@pytest.mark.parametrize("name", ["p.yaml", "p.json"])
def test_any_bytes(tmp_path, content, name):
    _tried(tmp_path, content, name)


@ANY
@given(value=values | pipelines)
def test_any_json_value(tmp_path, value):
    _tried(tmp_path, json.dumps(value), "p.json")


@ANY
@given(value=pipelines)
def test_any_pipeline_as_yaml_flow(tmp_path, value):
    _tried(tmp_path, json.dumps(value, ensure_ascii=False), "p.yaml")


@ANY
@given(value=pipelines)
def test_any_data_in_python(value):
    try:
        pipeline = Pipeline(**value)
    except ConfigError as error:
        assert all(line.isprintable() for line in error.problems)
    else:
        assert len(pipeline.ordered_steps) == len(pipeline.steps)
