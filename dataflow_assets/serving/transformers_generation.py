"""A loaded `transformers` model: prompts to tokens, tokens to answers, texts to vectors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.spec import TransformersSpec
from dataflow_assets.serving.transformers_prompts import Prompts
from dataflow_assets.serving.transformers_sampling import Sampling, samplings_of
from dataflow_assets.serving.transformers_writing import Prompted, Writer, padded

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
        return self._filled(answers, rows) if rows else answers

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

    def _filled(self, answers: list[Answer | CallFailed], rows: Sequence[_Row]) -> list[Answer | CallFailed]:
        """The answers with the texts of their rows."""
        writer = Writer(self._tokenizer, self._generator, self._spec.device)
        written = writer.written([Prompted(row.tokens, row.sampling) for row in rows])
        for row, (text, count, reason) in zip(rows, written, strict=True):
            answer = answers[row.place]
            assert isinstance(answer, Answer)
            answers[row.place] = replace(
                answer,
                texts=(*answer.texts, text),
                tokens_out=answer.tokens_out + count,
                finish_reasons=(*answer.finish_reasons, reason),
            )
        return answers

    def _vectors(self, prompts: Sequence[list[int]]) -> list[list[float]]:
        import torch

        pad = self._tokenizer.pad_token_id or 0
        ids, mask = padded(prompts, pad, self._spec.device, left=False)
        with torch.inference_mode():
            hidden = self._encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            weights = mask.unsqueeze(-1)
            means = (hidden * weights).sum(1) / weights.sum(1)
            return torch.nn.functional.normalize(means, dim=-1).tolist()


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
