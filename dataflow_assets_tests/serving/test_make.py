"""Each kind of serving that a pipeline may name is made, without a connection or a model."""

import asyncio
import importlib.util

import pytest
from pydantic import TypeAdapter

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.make import make_serving
from dataflow_assets.serving.spec import ServingSpec, TransformersSpec

KINDS = {
    "openai": "OpenAIServing",
    "transformers": "TransformersServing",
    "litellm": "LiteLLMServing",
    "scripted": "ScriptedServing",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_made_and_closed_unused(kind: str) -> None:
    package = {"transformers": "torch", "litellm": "litellm"}.get(kind, "dataflow_assets")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"not installed: {package}")
    spec: ServingSpec = TypeAdapter(ServingSpec).validate_python({"type": kind, "model": "m"})
    serving = make_serving(spec)
    asyncio.run(serving.close())
    assert (type(serving).__name__, serving.model) == (KINDS[kind], "m")


def test_missing_packages_of_a_local_model_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"torch and transformers.*pip install 'dataflow_assets\[models\]'"):
        make_serving(TransformersSpec(type="transformers", model="m"))
