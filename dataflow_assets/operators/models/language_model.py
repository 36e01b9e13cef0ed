"""A causal language model that says how well it would have foreseen given tokens."""

from collections.abc import Sequence
from math import isnan
from typing import Any, NamedTuple

from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.forward_passes import NotFinite
from dataflow_assets.operators.models.loading import loaded_model
from dataflow_assets.operators.models.model_params import ReadingParams
from dataflow_assets.serving.transformers_writing import padded

_LOGITS_AT_ONCE = 1 << 24
_SAME = 1e-2


class Asked(NamedTuple):
    """A sequence, and from which place on its tokens are to be foreseen; the first one never can be."""

    tokens: Sequence[int]
    begin: int = 1


class LanguageModel:
    """Mean losses of many sequences, in few forward passes, and no logits that nobody needs.

    Sequences are filled up at the right, where a causal model does not look, so no attention mask is
    needed. Logits are made of those places alone whose next token counts, for models whose logits are
    their output layer on the last hidden states (tried at load); of all places for other models.
    """

    def __init__(self, params: ReadingParams) -> None:
        import torch

        loaded = loaded_model("AutoModelForCausalLM", params)
        self._model, self.tokenizer, self.device, limit, self.passes = loaded
        self.max_tokens = min(params.max_tokens or limit, limit)
        self._body: Any = self._model.base_model
        self._head: Any = self._model.get_output_embeddings()
        if not self._is_body_and_head():
            self._body, self._head = self._model, None
        if params.compile:
            self._body = torch.compile(self._body, dynamic=True)

    @property
    def begin_tokens(self) -> list[int]:
        """The token that the model's texts begin with, for tokenizers that put one there."""
        begin = self.tokenizer.bos_token_id
        put = self.tokenizer("a", verbose=False)["input_ids"][:1]
        return put if begin is not None and put == [begin] else []

    def mean_losses(self, sequences: Sequence[Asked]) -> list[float | RowError | None]:
        """The mean of -log p over the tokens from `begin` on; None where there is none to be foreseen."""
        places = [place for place, asked in enumerate(sequences) if len(asked.tokens) > max(asked.begin, 1)]
        lengths = [len(sequences[place].tokens) for place in places]

        def losses(together: Sequence[int]) -> list[float]:
            return self._losses([sequences[places[one]] for one in together])

        results: list[float | RowError | None] = [None] * len(sequences)
        for place, loss in zip(places, self.passes.run(lengths, losses), strict=True):
            results[place] = NotFinite.of_a_model() if isinstance(loss, float) and isnan(loss) else loss
        return results

    def _losses(self, together: Sequence[Asked]) -> list[float]:
        import torch

        ids, _ = padded([asked.tokens for asked in together], 0, self.device, left=False)
        begins = [max(asked.begin, 1) for asked in together]
        rows = torch.tensor(
            [row for row, asked in enumerate(together) for _ in range(begins[row], len(asked.tokens))]
        )
        targets = torch.tensor(
            [place for row, asked in enumerate(together) for place in range(begins[row], len(asked.tokens))]
        )
        with torch.inference_mode():
            out = self._body(input_ids=ids, use_cache=False)[0]
            seen = out[rows, targets - 1]
            losses = torch.cat(
                [self._token_losses(*part) for part in self._parts(seen, ids[rows, targets])]
            ).cpu()
        sums = torch.zeros(len(together), dtype=torch.float64).index_add_(0, rows, losses.double())
        counts = [len(asked.tokens) - begin for asked, begin in zip(together, begins, strict=True)]
        return [total / count for total, count in zip(sums.tolist(), counts, strict=True)]

    def _parts(self, seen: Any, targets: Any) -> Any:
        """Hidden states (or logits) and the tokens to be foreseen, so many that their logits fit."""
        size = max(1, _LOGITS_AT_ONCE // self._model.config.get_text_config().vocab_size)
        return zip(seen.split(size), targets.split(size), strict=True)

    def _token_losses(self, seen: Any, targets: Any) -> Any:
        import torch

        logits = seen if self._head is None else self._head(seen)
        return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")

    def _is_body_and_head(self) -> bool:
        """Whether the output layer on the last hidden states gives the model's own logits."""
        import torch

        if self._head is None or self._body is self._model:
            return False
        ids = torch.arange(8, device=self.device).unsqueeze(0)
        with torch.inference_mode():
            own = self._model(input_ids=ids, use_cache=False).logits.float()
            found = self._head(self._body(input_ids=ids, use_cache=False)[0]).float()
        return own.shape == found.shape and bool((own - found).abs().max() <= _SAME * own.abs().max())
