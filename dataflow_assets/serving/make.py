"""Makes a serving of what the pipeline says of it."""

from dataflow_assets.serving.calls import Serving
from dataflow_assets.serving.spec import LiteLLMSpec, OpenAISpec, ServingSpec, TransformersSpec


def make_serving(spec: ServingSpec) -> Serving:
    """The serving; nothing is connected or loaded yet. Raises ConfigError, e.g. for a missing package."""
    if isinstance(spec, OpenAISpec):
        from dataflow_assets.serving.openai import OpenAIServing

        return OpenAIServing(spec)
    if isinstance(spec, TransformersSpec):
        from dataflow_assets.serving.transformers_model import TransformersServing

        return TransformersServing(spec)
    if isinstance(spec, LiteLLMSpec):
        from dataflow_assets.serving.litellm_adapter import LiteLLMServing

        return LiteLLMServing(spec)
    from dataflow_assets.serving.scripted import ScriptedServing

    return ScriptedServing(spec)
