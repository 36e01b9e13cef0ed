"""A model that reads whole texts and gives each some numbers: a classifier, or an embedding model."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.forward_passes import NotFinite
from dataflow_assets.operators.models.loading import loaded_model
from dataflow_assets.operators.models.model_params import ReadingParams
from dataflow_assets.operators.models.texts import Tokens, whole_tokens
from dataflow_assets.serving.transformers_writing import padded

Numbers = list[float]


class TextEncoder:
    """A model of the `transformers` class `kind`, and what makes numbers of its output.

    `numbers(output, mask)` gives one row of a tensor for each text. `most` is a limit in tokens below
    the model's own.
    """

    def __init__(
        self,
        kind: str,
        params: ReadingParams,
        numbers: Callable[[Any, Any], Any],
        most: int | None = None,
    ) -> None:
        import torch

        model, self.tokenizer, self.device, limit, self.passes = loaded_model(kind, params)
        self.config = model.config
        self.max_tokens = min(params.max_tokens or most or limit, limit)
        self._pad = self.tokenizer.pad_token_id or 0
        if self.config.pad_token_id is None:
            self.config.pad_token_id = self._pad  # decoders look for the last token by it
        self.config.use_cache = False  # decoders would keep what only writing needs
        self._model = torch.compile(model, dynamic=True) if params.compile else model
        self._numbers = numbers

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of the texts."""
        return whole_tokens(self.tokenizer, texts, self.max_tokens)

    def numbers(self, texts: Sequence[Tokens]) -> list[Numbers | RowError | None]:
        """The numbers of each text; None for one that has no token."""
        places = [place for place, text in enumerate(texts) if text.tokens]
        lengths = [len(texts[place].tokens) for place in places]

        def run(together: Sequence[int]) -> list[Numbers]:
            return self._run([texts[places[one]].tokens for one in together])

        results: list[Numbers | RowError | None] = [None] * len(texts)
        for place, found in zip(places, self.passes.run(lengths, run), strict=True):
            fits = isinstance(found, RowError) or all(map(isfinite, found))
            results[place] = found if fits else NotFinite.of_a_model()
        return results

    def _run(self, sequences: Sequence[Sequence[int]]) -> list[Numbers]:
        import torch

        ids, mask = padded(sequences, self._pad, self.device, left=False)
        with torch.inference_mode():
            output = self._model(input_ids=ids, attention_mask=mask)
            return self._numbers(output, mask).float().cpu().tolist()
