"""The models that a deployment's assets ask, as a Dagster resource."""

import asyncio
from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import Field, SecretStr, TypeAdapter, ValidationError

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.asking import Asking, Where
from dataflow_assets.serving.calls import Answer, Call, Message
from dataflow_assets.serving.choice import serving_of
from dataflow_assets.serving.spec import ServingSpec
from dataflow_assets.serving.usage import Usage

SERVINGS_KEY = "servings"
_BY_HAND = Where("assets of your own", "ask")


class ServingsResource(dg.ConfigurableResource):
    """Servings by name. One that a pipeline has too takes the place of the pipeline's.

    `named` has for each name what a pipeline's `servings` has, e.g. `{default: {type: openai, model: m,
    base_url: http://127.0.0.1:8000/v1}}`; `api_keys` the keys by the same names, so that they can be
    `EnvVar`s. `ledger` is the file or URL of the answers for `ask`.
    """

    named: dict[str, Any] = Field(default_factory=dict)
    api_keys: dict[str, str] = Field(default_factory=dict)
    ledger: str = "ledger.sqlite"

    def specs(self) -> dict[str, ServingSpec]:
        """The servings, checked. Raises ConfigError."""
        adapter: TypeAdapter[ServingSpec] = TypeAdapter(ServingSpec)
        specs = {}
        for name, given in self.named.items():
            key = {"api_key": SecretStr(self.api_keys[name])} if name in self.api_keys else {}
            try:
                specs[name] = adapter.validate_python({**given, **key})
            except ValidationError as error:
                problem = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(map(str, problem["loc"]))
                raise ConfigError(
                    f"resource {SERVINGS_KEY!r}, serving {name!r}, {where}: {problem['msg']}"
                ) from None
        return specs

    def ask(
        self, messages: str | Sequence[Message], serving: str = "default", **parameters: object
    ) -> Answer:
        """The answer to a prompt or a conversation, for assets of your own; kept in the ledger.

        Limits, retries and prices are those of the serving. Raises CallFailed, Paused.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        call = Call(tuple(messages), parameters)
        asking = Asking(serving_of(serving, self.specs()), self.ledger, _BY_HAND, batch_rows=1)
        return asyncio.run(_asked(asking, call))


async def _asked(asking: Asking, call: Call) -> Answer:
    client = await asking.client()
    try:
        return await client.ask(call, lambda answer: answer, Usage())
    finally:
        await client.close()
