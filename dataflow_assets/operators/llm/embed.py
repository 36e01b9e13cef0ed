"""Turns a text into a vector."""

import math
from collections.abc import Mapping

from pydantic import Field, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.operator import Ask, Done, LLMOperator, ServingParams
from dataflow_assets.operators.llm.template import written_text_of
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Answer, Call, CallFailed


class _EmbedParams(ServingParams):
    column: str = Field("text", min_length=1, description="The text column.")
    output_column: str = Field("embedding", min_length=1, description="The column for the vector.")
    dimensions: int | None = Field(
        None, ge=1, description="Length of the vector, of models that let one choose."
    )
    normalize: bool = Field(False, description="Scale each vector to length 1.")

    @model_validator(mode="after")
    def _samples_nothing(self) -> "_EmbedParams":
        for name in ("temperature", "max_tokens", "seed"):
            if getattr(self, name) is not None:
                raise ValueError(f"an embedding takes no {name}; leave it out")
        return self


@register
class Embed(LLMOperator):
    """Turns a text column into vectors, by the embedding model of a serving.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (JSON list of floats). Fails a row without text as MissingValue, an answer without finite numbers,
    of another length than `dimensions`, or of length 0 with `normalize`, as `bad_response`. Needs a
    serving whose model makes embeddings, in the example
    `servings: {vectors: {type: openai, model: text-embedding-3-small, api_key: "${OPENAI_API_KEY}"}}`.

    Example:
        - {name: embedded, type: embed, params: {column: text, serving: vectors}}
    """

    name = "embed"
    needs_max_tokens = False
    Params = _EmbedParams
    params: _EmbedParams

    def reads(self) -> list[str]:
        """The text column."""
        return [self.params.column]

    def writes(self) -> Schema:
        """The vector."""
        return {self.params.output_column: "json"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The vector of the row's text."""
        text = written_text_of(row, self.params.column)
        parameters = {} if self.params.dimensions is None else {"dimensions": self.params.dimensions}
        call = Call(({"role": "user", "content": text},), parameters, kind="embedding")
        return {self.params.output_column: await ask(call, self._check)}

    def _check(self, answer: Answer) -> list[float]:
        vector = list(answer.vector or ())
        wanted = self.params.dimensions
        if not vector or not all(map(math.isfinite, vector)):
            raise CallFailed(
                "bad_response", "no vector of finite numbers came back; is it an embedding model?"
            )
        if wanted is not None and len(vector) != wanted:
            raise CallFailed("bad_response", f"a vector of length {len(vector)} came back, expected {wanted}")
        return _scaled(vector) if self.params.normalize else vector


def _scaled(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    if not length:
        raise CallFailed("bad_response", "a vector of zeros came back, which has no direction to normalize")
    return [number / length for number in vector]
