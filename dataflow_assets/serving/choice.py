"""Which serving a step asks: one of the pipeline, the one of the environment, or the scripted one."""

import os
from collections.abc import Iterator, Mapping, Sequence

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.operator import DEFAULT_SERVING, LLMOperator
from dataflow_assets.operators.operator import Operator
from dataflow_assets.serving.asking import identity_of
from dataflow_assets.serving.spec import BudgetSpec, OpenAISpec, ScriptedSpec, ServingSpec

OPENAI, SCRIPTED = "openai", "scripted"
BASE_URL, API_KEY, MODEL = "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"


def serving_of(name: str, servings: Mapping[str, ServingSpec]) -> ServingSpec:
    """The serving of this name.

    Beside the pipeline's own there are `openai` (from OPENAI_MODEL, OPENAI_BASE_URL and
    OPENAI_API_KEY), `scripted` (a fake), and `default`: the first of these two that can be.
    Raises ConfigError for a name that nothing has.
    """
    if name in servings:
        return servings[name]
    if name == SCRIPTED or (name == DEFAULT_SERVING and not environment_is_set()):
        return ScriptedSpec(type="scripted")
    if name in (OPENAI, DEFAULT_SERVING):
        return _of_environment()
    known = ", ".join([*servings, DEFAULT_SERVING, OPENAI, SCRIPTED])
    raise ConfigError(f"there is no serving {name!r}; the pipeline has {known}")


def environment_is_set() -> bool:
    """Whether the environment names a model and where it is."""
    return bool(os.environ.get(MODEL) and (os.environ.get(BASE_URL) or os.environ.get(API_KEY)))


def _of_environment() -> OpenAISpec:
    if not environment_is_set():
        raise ConfigError(
            f"serving {OPENAI!r} needs {MODEL}, and {BASE_URL} or {API_KEY}, in the environment"
        )
    fields: dict[str, object] = {"type": "openai", "model": os.environ[MODEL]}
    if os.environ.get(BASE_URL):
        fields["base_url"] = os.environ[BASE_URL]
    if os.environ.get(API_KEY):
        fields["api_key"] = os.environ[API_KEY]
    return OpenAISpec.model_validate(fields)


def asked_servings(
    operators: Mapping[str, Operator], servings: Mapping[str, ServingSpec]
) -> Iterator[tuple[str, LLMOperator, ServingSpec]]:
    """The steps that ask a model: name, operator, serving. Raises ConfigError."""
    for step, operator in operators.items():
        if isinstance(operator, LLMOperator):
            yield step, operator, serving_of(operator.serving, servings)


def bind_servings(operators: Mapping[str, Operator], servings: Mapping[str, ServingSpec]) -> None:
    """Tells each operator which model it asks, for its fingerprint. Raises ConfigError."""
    for _step, operator, spec in asked_servings(operators, servings):
        operator.model_identity = identity_of(spec)


def unbounded(operator: LLMOperator, spec: ServingSpec, budgets: Sequence[BudgetSpec]) -> str | None:
    """Why the ceilings could not hold for this step, or None."""
    ceilings = [ceiling for budget in budgets for ceiling, _monthly in budget.ceilings()]
    if not ceilings:
        return None
    limits = (spec.parameters.get("max_tokens"), getattr(operator.params, "max_tokens", None))
    if operator.needs_max_tokens and not any(limits):
        return "a budget needs the longest answer of each call: add `max_tokens` to the step's params"
    from dataflow_assets.serving.prices import known_price  # reads YAML as pipelines do, which ask us

    costs = any(ceiling.max_cost is not None for ceiling in ceilings)
    if costs and known_price(spec) is None:
        return (
            f"a budget of cost needs the price of {spec.model!r}: add `price: {{input: …, output: …}}` "
            "(per million tokens) to its serving"
        )
    return None
