"""Writes texts by a local model, without a server."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import xxhash
from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.generators import Generator, TransformersGenerator, VllmGenerator
from dataflow_assets.operators.models.model_operator import ModelOperator, Texts, Values
from dataflow_assets.operators.models.model_params import ModelParams
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Call, CallFailed, Message
from dataflow_assets.serving.transformers_prompts import Prompts
from dataflow_assets.serving.transformers_sampling import Sampling
from dataflow_assets.serving.transformers_writing import Prompted, Written


class _GenerateLocalParams(ModelParams):
    column: str = Field("prompt", min_length=1, description="The column of prompts.")
    system: str | None = Field(None, description="The text of a system message.")
    output_column: str = Field("generated", min_length=1, description="The column for the text.")
    max_new_tokens: int = Field(512, ge=1, description="The most tokens of a text; it is cut there.")
    temperature: float = Field(0.0, ge=0.0, description="0 takes the likeliest token each time.")
    top_p: float = Field(1.0, gt=0.0, le=1.0, description="Sample from the likeliest tokens of this sum.")
    top_k: int = Field(0, ge=0, description="Sample from so many of the likeliest tokens; 0: from all.")
    seed: int = Field(0, description="Of the samples; each row has its own, made of this and its id.")
    stop: list[str] = Field([], description="Texts that end the text; they are no part of it.")
    backend: Literal["transformers", "vllm"] = Field(
        "transformers", description="What generates; `vllm` is faster on GPUs and must be installed."
    )
    vllm: dict[str, Any] = Field(
        {},
        description="Further arguments of `vllm.LLM`, such as `{max_model_len: 4096}`. A replica with a part "
        "of a GPU takes that part of its memory, unless `gpu_memory_utilization` is given.",
    )


@register
class GenerateLocal(ModelOperator[Generator]):
    """Writes a text after each prompt by a model in this process, many rows at a time.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (string), `<output_column>_finish_reason` (string: `stop`, or `length` where it was cut at
    `max_new_tokens` or at the end of what the model can look at) and `<output_column>_tokens` (int64).
    A model with a chat template gets the prompt as a user's message, another one as plain text; what
    stands in a prompt never becomes a marker of the template. Greedy, or a sample by a seed of the
    row's own: whatever rows are beside it, the text is the same as far as two tokens are not equally
    likely to within the rounding of floats. Null fails as MissingValue, a value that is not text as
    WrongType, a prompt without room for a token as `context_length`, one without any token as
    `bad_request`, one too large for the device's memory as OutOfMemory. `generate` asks a server
    instead. Needs the extra `models`.

    Example:
        - name: written
          type: generate_local
          params: {model: HuggingFaceTB/SmolLM2-135M-Instruct, column: question, max_new_tokens: 256}
    """

    name = "generate_local"
    version = "2"
    Params = _GenerateLocalParams
    params: _GenerateLocalParams

    def needed_columns(self) -> list[str]:
        """The prompts."""
        return [self.params.column]

    def writes(self) -> Schema:
        """The text, how it ended, how long it is."""
        out = self.params.output_column
        return {out: "string", f"{out}_finish_reason": "string", f"{out}_tokens": "int64"}

    def fingerprint_of_params(self) -> Mapping[str, object]:
        """Without how much memory vLLM takes, which changes no text; nor with an empty `vllm`."""
        found = dict(super().fingerprint_of_params())
        vllm = {name: value for name, value in self.params.vllm.items() if name != "gpu_memory_utilization"}
        del found["vllm"]
        return {**found, "vllm": vllm} if vllm else found

    def needed_packages(self) -> Mapping[str, str]:
        """What runs the model: vLLM is no extra, it wants its own version of torch."""
        return {"vllm": ""} if self.params.backend == "vllm" else super().needed_packages()

    def load(self) -> Generator:
        """The backend with its model."""
        return (
            VllmGenerator(self.params, self.params.vllm)
            if self.params.backend == "vllm"
            else TransformersGenerator(self.params)
        )

    def results(
        self, model: Generator, rows: Sequence[Texts], row_ids: Sequence[str]
    ) -> list[Values | RowError]:
        """The text of each row."""
        prompts = Prompts(model.tokenizer)
        asked = [
            self._prompted(model, prompts.tokens(Call(self._messages(text or ""))), row_id)
            for (text,), row_id in zip(rows, row_ids, strict=True)
        ]
        answers = iter(model.written([one for one in asked if isinstance(one, Prompted)]))
        return [_values(one if isinstance(one, RowError) else next(answers)) for one in asked]

    def _messages(self, text: str) -> tuple[Message, ...]:
        user = Message(role="user", content=text)
        return (
            (user,)
            if self.params.system is None
            else (Message(role="system", content=self.params.system), user)
        )

    def _prompted(self, model: Generator, tokens: list[int], row_id: str) -> Prompted | RowError:
        room = model.most_tokens - len(tokens)
        if not tokens:
            return CallFailed("bad_request", "the prompt is empty, expected at least one token")
        if room <= 0:
            return CallFailed(
                "context_length",
                f"the prompt has {len(tokens)} tokens, expected less than "
                f"{model.most_tokens}; shorten the text",
            )
        sampling = Sampling(
            max_tokens=min(self.params.max_new_tokens, room),
            temperature=self.params.temperature,
            top_p=self.params.top_p,
            top_k=self.params.top_k,
            seed=xxhash.xxh3_64_intdigest(f"{self.params.seed} {row_id}".encode()) >> 1,
            stop=tuple(self.params.stop),
        )
        return Prompted(tokens, sampling)


def _values(found: Written | RowError) -> Values | RowError:
    return found if isinstance(found, RowError) else (found.text, found.finish_reason, found.tokens)
