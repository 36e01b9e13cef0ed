"""What is asked of a model, what it answers, and how a call fails."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypedDict

import orjson
import xxhash

from dataflow_assets.errors import RowError

Kind = Literal["chat", "completion", "embedding"]
ErrorClass = Literal[
    "rate_limited",  # 429
    "server_error",  # 5xx, 409, 425
    "timeout",  # 408, or no answer within the time limits
    "connection",  # refused, reset, cut off before the head of the answer
    "cut_stream",  # an answer, streamed or not, that ended before its end
    "bad_response",  # HTML, no JSON, an error object with status 200, no choices
    "wrong_choices",  # another number of choices than were asked for
    "empty",  # a choice without content
    "truncated",  # finish reason `length`
    "content_filter",
    "refusal",
    "json_parse",  # structured output: no JSON in the text
    "schema_invalid",  # structured output: JSON of another shape
    "bad_request",  # 400, 422 and other 4xx
    "context_length",  # 400 with that code
    "too_large",  # 413
    "auth",  # 401, 403
    "not_found",  # 404: no such model or path
    "quota",  # 429 that says that the account is used up
    "gate",  # a quality gate; `error_class` of the row is then `gate:<name>`
]
RETRYABLE: frozenset[str] = frozenset(
    [
        "rate_limited",
        "server_error",
        "timeout",
        "connection",
        "cut_stream",
        "bad_response",
        "wrong_choices",
        "empty",
        "json_parse",
        "schema_invalid",
    ]
)
# Every other call would fail in the same way: a run of these pauses the pipeline.
HARD: frozenset[str] = frozenset(["auth", "not_found", "quota"])


class Message(TypedDict):
    """One message of a conversation; `content` is sent as it is."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Call:
    """What is asked of a model, and nothing of where or how: equal calls may share an answer.

    `parameters` are those of the API (`temperature`, `top_p`, `max_tokens`, `seed`, `stop`, …).
    `schema` is the JSON schema that the answer must have. `n` answers are wanted; `sample` tells
    equal calls apart that must be answered each. Completions and embeddings have one message, of
    role `user`.
    """

    messages: tuple[Message, ...]
    parameters: Mapping[str, object] = field(default_factory=dict)
    kind: Kind = "chat"
    schema: Mapping[str, object] | None = None
    n: int = 1
    sample: int = 0

    def key(self, model: str) -> str:
        """The hash under which the ledger keeps the answer of this model to this call."""
        parts = [model, self.kind, self.messages, self.parameters, self.schema, self.n, self.sample]
        return xxhash.xxh3_128_hexdigest(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))

    @cached_property
    def max_tokens_in(self) -> int:
        """More tokens than the messages can have: their bytes, and a few for each message's frame."""
        schema = len(orjson.dumps(self.schema)) if self.schema else 0
        return schema + sum(len(message["content"].encode()) + 16 for message in self.messages)

    @property
    def max_tokens_out(self) -> int | None:
        """The most tokens that all answers together can have; None where no limit is sent."""
        if self.kind == "embedding":
            return 0
        limit = self.parameters.get("max_tokens") or self.parameters.get("max_completion_tokens")
        return limit * self.n if isinstance(limit, int) else None


@dataclass(frozen=True)
class Answer:
    """What came back: `n` texts, or a vector for an embedding.

    `cost` is in the currency of the price table; `attempts` counts the calls sent for it, itself
    included; `cached` says that it came from the ledger.
    """

    texts: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    model: str = ""
    finish_reasons: tuple[str, ...] = ()
    vector: tuple[float, ...] | None = None
    cost: float = 0.0
    attempts: int = 1
    cached: bool = False

    @property
    def text(self) -> str:
        """The first text."""
        return self.texts[0]

    def to_bytes(self) -> bytes:
        """The answer as the ledger keeps it."""
        body = {
            "texts": self.texts,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "model": self.model,
            "finish_reasons": self.finish_reasons,
            "vector": self.vector,
            "cost": self.cost,
        }
        return orjson.dumps(body)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Answer":
        """The answer that the ledger kept."""
        body = orjson.loads(data)
        for name in ("texts", "finish_reasons"):
            body[name] = tuple(body[name])
        body["vector"] = None if body["vector"] is None else tuple(body["vector"])
        return cls(**body, cached=True)


class CallFailed(RowError):
    """A call that brought no usable answer; its row goes to `_failed` with `error_class`.

    `raw` is the last raw answer, as far as there was one. `retry_after_s` is what the server asked
    for. `tokens_in` and `tokens_out` are what was billed all the same. `attempts` counts the calls sent.
    """

    def __init__(
        self,
        error_class: str,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        raw: str = "",
        tokens_in: int = 0,
        tokens_out: int = 0,
        attempts: int = 1,
    ) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.status = status
        self.retry_after_s = retry_after_s
        self.raw = raw
        self.tokens_in = tokens_in
        self.tokens_out = tokens_out
        self.attempts = attempts

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.error_class in RETRYABLE

    @property
    def hard(self) -> bool:
        """Whether every other call would fail like this one."""
        return self.error_class in HARD


class Serving(Protocol):
    """Something that answers calls. One interface for servers, models in the process and fakes."""

    model: str
    supports_n: bool

    async def send(self, call: Call) -> Answer:
        """One attempt, without retries or limits. Raises CallFailed."""
        ...

    async def close(self) -> None:
        """Frees connections, models, processes."""
        ...
