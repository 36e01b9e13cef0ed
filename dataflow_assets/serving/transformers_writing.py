"""Lets a loaded `transformers` model write: prompts of one batch to texts, each in its own way."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dataflow_assets.serving.transformers_sampling import RowSampler, RowStops, Sampling


class Prompted(NamedTuple):
    """A text to be written: after which tokens, and how."""

    tokens: list[int]
    sampling: Sampling


class Written(NamedTuple):
    """What was written: its text, how many tokens it took, and whether it came to its end (`stop`)."""

    text: str
    tokens: int
    finish_reason: str


class Writer:
    """Writes with this model on this device; used by one thread.

    What the model's folder says of generation, such as a penalty on repetition, is taken from the model: the
    row's own sampling alone counts, and what fills up a batch would be penalized in rows beside longer ones.
    """

    def __init__(self, tokenizer: Any, model: Any, device: str) -> None:
        from transformers import GenerationConfig

        self._tokenizer = tokenizer
        self._model = model
        self._device = device
        eos = model.generation_config.eos_token_id
        eos = tokenizer.eos_token_id if eos is None else eos
        ends: list[int] = eos if isinstance(eos, list) else [] if eos is None else [eos]
        pad = tokenizer.pad_token_id
        # what fills up the batch, which the model never reads
        self._pad: int = next(iter(ends), 0) if pad is None else pad
        self._ends = {*ends, self._pad}
        model.generation_config = GenerationConfig(eos_token_id=ends or None, pad_token_id=self._pad)

    def written(self, rows: Sequence[Prompted]) -> list[Written]:
        """The text of each row, made in one batch."""
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        samplings = [row.sampling for row in rows]
        ids, mask = padded([row.tokens for row in rows], self._pad, self._device, left=True)
        with torch.inference_mode():
            out = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                max_new_tokens=max(sampling.max_tokens for sampling in samplings),
                logits_processor=LogitsProcessorList([RowSampler(samplings)]),
                stopping_criteria=StoppingCriteriaList([RowStops(samplings, ids.shape[1], self._tokenizer)]),
                pad_token_id=self._pad,
            )
        return [
            self._written(tokens[: sampling.max_tokens], sampling)
            for tokens, sampling in zip(out[:, ids.shape[1] :].tolist(), samplings, strict=True)
        ]

    def _written(self, tokens: list[int], sampling: Sampling) -> Written:
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        kept = tokens[:end]
        text = self._tokenizer.decode(kept, skip_special_tokens=True)
        found = [place for stop in sampling.stop if (place := text.find(stop)) >= 0]
        if found:
            return Written(text[: min(found)], len(kept), "stop")
        return Written(text, len(kept) + (end is not None), "length" if end is None else "stop")


def padded(sequences: Sequence[Sequence[int]], pad: int, device: str, left: bool) -> tuple[Any, Any]:
    """Token ids and attention mask of equal length, on the device."""
    import torch

    length = max(map(len, sequences))
    ids = torch.full((len(sequences), length), pad)
    mask = torch.zeros((len(sequences), length), dtype=torch.long)
    for row, tokens in enumerate(sequences):
        place = slice(length - len(tokens), length) if left else slice(len(tokens))
        ids[row, place] = torch.tensor(tokens)
        mask[row, place] = 1
    return ids.to(device), mask.to(device)
