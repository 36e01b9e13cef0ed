"""What a pipeline says of its servings and budgets: which model, where, how fast, at what price."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

_CONFIG = ConfigDict(extra="forbid", strict=True, frozen=True)


class Price(BaseModel):
    """What a million tokens cost."""

    model_config = _CONFIG

    input: float = Field(ge=0)
    output: float = Field(default=0.0, ge=0)


class _Serving(BaseModel):
    model_config = _CONFIG

    model: str = Field(min_length=1, description="The model's name, as the server knows it.")
    concurrency: int = Field(default=32, ge=1, description="Calls in flight at most.")
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0, description="Input and output together.")
    max_retries: int = Field(default=5, ge=0, description="Further calls after the first, for one row.")
    backoff_s: float = Field(
        default=1.0, gt=0, description="The first wait is random, up to this; then doubled."
    )
    max_wait_s: float = Field(default=60.0, gt=0, description="Longest wait, Retry-After included.")
    breaker: int = Field(
        default=3, ge=1, description="Hard failures in a row (a wrong key) that pause the run."
    )
    parameters: dict[str, object] = Field(default={}, description="Sent with every call, e.g. `temperature`.")
    price: Price | None = Field(
        default=None, description="Price per million tokens; default: the price table."
    )


class OpenAISpec(_Serving):
    """Any server with the OpenAI API: vLLM, SGLang, llama.cpp, Ollama, the commercial ones."""

    type: Literal["openai"] = "openai"
    base_url: str = Field(default="https://api.openai.com/v1", min_length=1)
    api_key: SecretStr | None = None
    headers: dict[str, SecretStr] = Field(default={}, description="Further headers.")
    connect_timeout_s: float = Field(default=10.0, gt=0)
    read_timeout_s: float = Field(default=120.0, gt=0, description="Longest silence within an answer.")
    total_timeout_s: float = Field(default=600.0, gt=0)
    stream: bool = Field(default=False, description="Ask for a streamed answer.")
    supports_n: bool = Field(default=False, description="The server answers `n` samples in one call.")
    structured: Literal["json_schema", "json_object", "prompt"] = Field(
        default="json_schema", description="How a schema is sent: as response_format, or in the prompt only."
    )


class TransformersSpec(_Serving):
    """A model of `transformers` in this process."""

    type: Literal["transformers"]
    path: str | None = Field(default=None, description="Folder of the model; default: `model` from the hub.")
    device: str = "cpu"
    concurrency: int = Field(default=8, ge=1, description="Prompts generated together at most.")


class LiteLLMSpec(_Serving):
    """Whatever LiteLLM can reach; needs the package `litellm`."""

    type: Literal["litellm"]
    api_key: SecretStr | None = None
    base_url: str | None = None
    total_timeout_s: float = Field(default=600.0, gt=0)


class ScriptedSpec(_Serving):
    """A fake that answers from a file, for tests and first steps; costs nothing and needs no server."""

    type: Literal["scripted"]
    model: str = "scripted"
    script: str | None = Field(
        default=None, description="YAML file of rules; default: the one of the package."
    )


ServingSpec = Annotated[
    OpenAISpec | TransformersSpec | LiteLLMSpec | ScriptedSpec, Field(discriminator="type")
]


class Ceiling(BaseModel):
    """The most that calls may cost (in the currency of the prices) and the most tokens, in and out."""

    model_config = _CONFIG

    max_cost: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)


class BudgetSpec(Ceiling):
    """A ceiling for all time, and one for each calendar month (UTC)."""

    month: Ceiling | None = None

    def ceilings(self) -> "list[tuple[Ceiling, bool]]":
        """The ceilings that are set; True where it is for the month."""
        both = [(self, False), (self.month, True)]
        return [(ceiling, monthly) for ceiling, monthly in both if ceiling is not None and _is_set(ceiling)]


def _is_set(ceiling: Ceiling) -> bool:
    return ceiling.max_cost is not None or ceiling.max_tokens is not None
