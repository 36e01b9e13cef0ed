"""What writes texts in this process: `transformers` in planned batches, or vLLM, which plans by itself."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dataflow_assets.errors import RunError
from dataflow_assets.operators.gpu_share import share_of_gpu
from dataflow_assets.operators.models.forward_passes import OutOfMemory
from dataflow_assets.operators.models.loading import loaded_model
from dataflow_assets.operators.models.model_params import ModelParams
from dataflow_assets.serving.transformers_writing import Prompted, Writer, Written

_MEMORY_SHARE = 0.9  # vLLM's own default, of what this process may have of its card


class Generator(Protocol):
    """Writes a text after each prompt. `most_tokens` is how many prompt and text may have together."""

    tokenizer: Any
    most_tokens: int

    def written(self, rows: Sequence[Prompted]) -> Sequence[Written | OutOfMemory]:
        """The text of each row, in order."""
        ...


class TransformersGenerator:
    """Generates in true batches of rows of like length, within a limit of tokens."""

    def __init__(self, params: ModelParams) -> None:
        loaded = loaded_model("AutoModelForCausalLM", params)
        self.tokenizer, self.most_tokens, self.passes = loaded.tokenizer, loaded.most_tokens, loaded.passes
        self._writer = Writer(loaded.tokenizer, loaded.model, loaded.device)

    def written(self, rows: Sequence[Prompted]) -> Sequence[Written | OutOfMemory]:
        """The text of each row, in order; a row counts with its prompt and the most that it may get."""
        lengths = [len(row.tokens) + row.sampling.max_tokens for row in rows]
        return self.passes.run(
            lengths, lambda together: self._writer.written([rows[place] for place in together])
        )


class VllmGenerator:
    """Generates by vLLM, which batches by itself; `tokens_per_pass` does not matter."""

    def __init__(self, params: ModelParams, further: Mapping[str, object]) -> None:
        # no extra of ours brings it: it wants a version of torch of its own
        self._vllm = importlib.import_module("vllm")
        how = {"model": params.source, "revision": params.revision, "dtype": params.dtype, "seed": 0}
        if (share := share_of_gpu()) < 1:  # it takes nearly all of the card for itself, whoever else is on it
            how["gpu_memory_utilization"] = round(_MEMORY_SHARE * share, 3)
        try:
            self._llm: Any = self._vllm.LLM(**how | dict(further))
        except Exception as error:  # of the engine, of CUDA, of the model's files: each its own
            raise RunError(
                f"vLLM cannot load the model {params.model!r}: {type(error).__name__}: {error}; its log "
                "says more; `vllm: {gpu_memory_utilization: 0.5}` has it take less memory, "
                "`vllm: {max_model_len: 4096}` look at fewer tokens"
            ) from error
        self.tokenizer = self._llm.get_tokenizer()
        self.most_tokens = self._llm.llm_engine.model_config.max_model_len

    def written(self, rows: Sequence[Prompted]) -> Sequence[Written]:
        """The text of each row, in order."""
        samplings = [
            self._vllm.SamplingParams(
                max_tokens=row.sampling.max_tokens,
                temperature=row.sampling.temperature,
                top_p=row.sampling.top_p,
                top_k=row.sampling.top_k or -1,
                seed=row.sampling.seed,
                stop=list(row.sampling.stop),
            )
            for row in rows
        ]
        prompts = [{"prompt_token_ids": row.tokens} for row in rows]
        answers = [one.outputs[0] for one in self._llm.generate(prompts, samplings, use_tqdm=False)]
        return [Written(one.text, len(one.token_ids), one.finish_reason or "length") for one in answers]
