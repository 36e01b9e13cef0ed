"""How a local model picks each next token: by row, so that rows of one batch may want different things."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataflow_assets.serving.calls import Call, CallFailed

DEFAULT_MAX_TOKENS = 512
_KNOWN = ("max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "seed", "stop")
_SEED_RANGE = 2**63


@dataclass(frozen=True)
class Sampling:
    """What one answer is made with. Temperature 0 takes the likeliest token; `stop` ends the answer."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()


def samplings_of(call: Call) -> list[Sampling]:
    """One for each of the `n` answers, with seeds in a row. Raises CallFailed `bad_request`."""
    parameters = call.parameters
    unknown = [name for name in parameters if name not in _KNOWN]
    if unknown:
        raise CallFailed(
            "bad_request",
            f"a model in this process knows no parameter {unknown[0]!r}; there are: {', '.join(_KNOWN)}",
        )
    stop = parameters.get("stop") or ()
    seed = _number(parameters, "seed", None)
    return [
        Sampling(
            max_tokens=int(_limit(parameters)),
            temperature=_number(parameters, "temperature", 0.0) or 0.0,
            top_p=_number(parameters, "top_p", 1.0) or 1.0,
            top_k=int(_number(parameters, "top_k", 0) or 0),
            seed=None if seed is None else (int(seed) + choice) % _SEED_RANGE,
            stop=(stop,)
            if isinstance(stop, str)
            else tuple(map(str, stop if isinstance(stop, Sequence) else ())),
        )
        for choice in range(call.n)
    ]


class RowSampler:
    """A logits processor: noise makes the greedy choice a sample of the row's own distribution.

    The largest of log-probabilities plus Gumbel noise is a sample of these probabilities (Gumbel-max;
    Maddison et al. 2014), so each row has its own temperature and its own seed within one batch.
    """

    def __init__(self, samplings: Sequence[Sampling]) -> None:
        import torch

        self._rows = [
            (row, sampling, torch.Generator())
            for row, sampling in enumerate(samplings)
            if sampling.temperature > 0
        ]
        for _, sampling, generator in self._rows:
            generator.seed() if sampling.seed is None else generator.manual_seed(sampling.seed)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with the rows that sample changed."""
        for row, sampling, generator in self._rows:
            scores[row] = _noisy(_narrowed(scores[row].float() / sampling.temperature, sampling), generator)
        return scores


class RowStops:
    """A stopping criterion: a row ends at its own length, or when one of its stop texts is written."""

    def __init__(self, samplings: Sequence[Sampling], prompt_tokens: int, tokenizer: Any) -> None:
        self._samplings = samplings
        self._prompt_tokens = prompt_tokens
        self._tokenizer = tokenizer

    def __call__(self, input_ids: Any, scores: Any, **_: object) -> Any:
        """For each row whether it is done."""
        import torch

        written = input_ids.shape[1] - self._prompt_tokens
        done = [
            written >= sampling.max_tokens or bool(sampling.stop and self._stopped(sampling, input_ids[row]))
            for row, sampling in enumerate(self._samplings)
        ]
        return torch.tensor(done, device=input_ids.device)

    def _stopped(self, sampling: Sampling, row: Any) -> bool:
        text = self._tokenizer.decode(row[self._prompt_tokens :], skip_special_tokens=True)
        return any(stop in text for stop in sampling.stop)


def _narrowed(scores: Any, sampling: Sampling) -> Any:
    """The scores with those outside of top-k and top-p at minus infinity."""
    if sampling.top_k and sampling.top_k < scores.numel():
        scores = scores.masked_fill(scores < scores.topk(sampling.top_k).values[-1], float("-inf"))
    if sampling.top_p < 1.0:
        ordered, places = scores.sort(descending=True)
        shares = ordered.softmax(-1)
        outside = shares.cumsum(-1) - shares >= sampling.top_p
        scores = scores.index_fill(0, places[outside], float("-inf"))
    return scores


def _noisy(scores: Any, generator: Any) -> Any:
    import torch

    uniform = torch.rand(scores.shape, generator=generator, dtype=torch.float64).clamp_min(1e-300)
    return scores - (-uniform.log()).log().to(scores)


def _limit(parameters: Mapping[str, object]) -> float:
    limit = _number(parameters, "max_tokens", None) or _number(parameters, "max_completion_tokens", None)
    return limit or DEFAULT_MAX_TOKENS


def _number(parameters: Mapping[str, object], name: str, default: float | None) -> float | None:
    """A parameter that is a number, or null."""
    value = parameters.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CallFailed("bad_request", f"the parameter {name!r} is {value!r}, expected a number")
    return value
