"""A loaded `transformers` model: prompts to tokens, tokens to answers, texts to vectors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.spec import TransformersSpec
from dataflow_assets.serving.transformers_prompts import Prompts
from dataflow_assets.serving.transformers_sampling import RowSampler, RowStops, Sampling, samplings_of

_NO_LIMIT = 1_000_000


class _Row(NamedTuple):
    """One answer to be made: to which call of the batch, of which tokens, how."""

    place: int
    tokens: list[int]
    sampling: Sampling


class Model:
    """The model of a spec; its parts are loaded when they are first needed. Used by one thread.

    Raises CallFailed `not_found` where there is no such model.
    """

    def __init__(self, spec: TransformersSpec) -> None:
        from transformers import AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self._spec = spec
        self._source = spec.path or spec.model
        self._tokenizer = self._read(AutoTokenizer)
        self._prompts = Prompts(self._tokenizer)
        self._generator: Any = None
        self._encoder: Any = None

    def generated(self, calls: Sequence[Call]) -> list[Answer | CallFailed]:
        """An answer for each call, with finish reasons `stop` and `length`."""
        if self._generator is None:
            from transformers import AutoModelForCausalLM

            self._generator = self._loaded(AutoModelForCausalLM)
        answers: list[Answer | CallFailed] = []
        rows: list[_Row] = []
        for place, call in enumerate(calls):
            try:
                found = self._rows(place, call)
                rows += found
                answers.append(Answer(tokens_in=len(found[0].tokens), model=self._spec.model))
            except CallFailed as failure:
                answers.append(failure)
        return self._filled(answers, rows, self._written(rows)) if rows else answers

    def embedded(self, calls: Sequence[Call]) -> list[Answer | CallFailed]:
        """A vector of length 1 for each call: the mean of the last layer over the tokens."""
        if self._encoder is None:
            from transformers import AutoModel

            self._encoder = self._loaded(AutoModel)
        limit = _positions(self._encoder)
        prompts = [self._prompts.plain(call) for call in calls]
        fitting = [place for place, tokens in enumerate(prompts) if 0 < len(tokens) <= limit]
        answers: list[Answer | CallFailed] = [_too_long(len(tokens), 0, limit) for tokens in prompts]
        vectors = self._vectors([prompts[place] for place in fitting]) if fitting else []
        for place, vector in zip(fitting, vectors, strict=True):
            answers[place] = Answer(
                tokens_in=len(prompts[place]), model=self._spec.model, vector=tuple(vector)
            )
        return answers

    def free(self) -> None:
        """Gives the memory back."""
        import torch

        self._generator = self._encoder = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _loaded(self, kind: Any) -> Any:
        return self._read(kind, dtype="auto").to(self._spec.device).eval()

    def _read(self, kind: Any, **how: object) -> Any:
        try:
            return kind.from_pretrained(self._source, **how)
        except (OSError, ValueError, ImportError) as error:
            message = f"the model {self._source!r} cannot be loaded: {error}"
            raise CallFailed("not_found", message) from error

    def _rows(self, place: int, call: Call) -> list[_Row]:
        """What is to be made for a call. Raises CallFailed `context_length`, `bad_request`."""
        tokens, limit = self._prompts.tokens(call), _positions(self._generator)
        room = limit - len(tokens)
        if room <= 0 or not tokens:
            raise _too_long(len(tokens), 1, limit)
        return [
            _Row(place, tokens, replace(sampling, max_tokens=min(sampling.max_tokens, room)))
            for sampling in samplings_of(call)
        ]

    def _written(self, rows: Sequence[_Row]) -> list[list[int]]:
        """The tokens that the model writes for each row, without what fills up the batch."""
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        ids, mask = self._padded([row.tokens for row in rows], left=True)
        samplings = [row.sampling for row in rows]
        with torch.inference_mode():
            out = self._generator.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                max_new_tokens=max(sampling.max_tokens for sampling in samplings),
                logits_processor=LogitsProcessorList([RowSampler(samplings)]),
                stopping_criteria=StoppingCriteriaList([RowStops(samplings, ids.shape[1], self._tokenizer)]),
                pad_token_id=self._pad,
            )
        written = out[:, ids.shape[1] :].tolist()
        return [tokens[: row.sampling.max_tokens] for tokens, row in zip(written, rows, strict=True)]

    def _filled(
        self, answers: list[Answer | CallFailed], rows: Sequence[_Row], written: Sequence[list[int]]
    ) -> list[Answer | CallFailed]:
        """The answers with the texts of their rows."""
        for row, tokens in zip(rows, written, strict=True):
            answer = answers[row.place]
            assert isinstance(answer, Answer)
            text, count, reason = self._text(tokens, row.sampling)
            answers[row.place] = replace(
                answer,
                texts=(*answer.texts, text),
                tokens_out=answer.tokens_out + count,
                finish_reasons=(*answer.finish_reasons, reason),
            )
        return answers

    def _text(self, tokens: list[int], sampling: Sampling) -> tuple[str, int, str]:
        """The text, how many tokens the model wrote for it, and whether it came to an end."""
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        kept = tokens[:end]
        text = self._tokenizer.decode(kept, skip_special_tokens=True)
        found = [place for stop in sampling.stop if (place := text.find(stop)) >= 0]
        if found:
            return text[: min(found)], len(kept), "stop"
        return text, len(kept) + (end is not None), "length" if end is None else "stop"

    @property
    def _pad(self) -> int:
        """The token that fills up the batch; the model never reads it."""
        pad = self._tokenizer.pad_token_id
        return next(iter(self._eos), 0) if pad is None else pad

    @property
    def _eos(self) -> list[int]:
        """The tokens by which the model ends an answer."""
        found = self._generator.generation_config.eos_token_id if self._generator is not None else None
        found = self._tokenizer.eos_token_id if found is None else found
        return found if isinstance(found, list) else [] if found is None else [found]

    @property
    def _ends(self) -> set[int]:
        return {*self._eos, self._pad}

    def _vectors(self, prompts: Sequence[list[int]]) -> list[list[float]]:
        import torch

        ids, mask = self._padded(prompts, left=False)
        with torch.inference_mode():
            hidden = self._encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            weights = mask.unsqueeze(-1)
            means = (hidden * weights).sum(1) / weights.sum(1)
            return torch.nn.functional.normalize(means, dim=-1).tolist()

    def _padded(self, prompts: Sequence[list[int]], left: bool) -> tuple[Any, Any]:
        """Token ids and attention mask of equal length, on the device."""
        import torch

        length = max(map(len, prompts))
        ids = torch.full((len(prompts), length), self._pad)
        mask = torch.zeros((len(prompts), length), dtype=torch.long)
        for row, tokens in enumerate(prompts):
            place = slice(length - len(tokens), length) if left else slice(len(tokens))
            ids[row, place] = torch.tensor(tokens)
            mask[row, place] = 1
        return ids.to(self._spec.device), mask.to(self._spec.device)


def _positions(model: Any) -> int:
    """How many tokens the model can look at."""
    limit = getattr(model.config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else _NO_LIMIT


def _too_long(tokens: int, more: int, limit: int) -> CallFailed:
    if not tokens:
        return CallFailed("bad_request", "the prompt is empty, expected at least one token")
    return CallFailed(
        "context_length", f"the prompt has {tokens} tokens, expected at most {limit - more}; shorten the text"
    )
