"""Rules: which request gets which behaviour."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import xxhash

from dataflow_assets_tests.fault_server.records import Asked

Behaviour = Mapping[str, object]
OK: Behaviour = {"kind": "ok"}


@dataclass
class Rule:
    """Behaviours for the requests that match all that is given.

    `then` is played in order, the last one for ever: for each content anew, or with `per="all"` over
    all requests that match. `calls` are ordinals since the reset, counted from 1; `every` is each
    n-th; `share` a fixed part of all contents; `in_flight_over` holds while more requests are open;
    `times` ends the rule after so many uses.
    """

    then: Sequence[Behaviour]
    contains: str | None = None
    model: str | None = None
    path: str | None = None
    calls: Sequence[int] | None = None
    every: int | None = None
    share: float | None = None
    in_flight_over: int | None = None
    times: int | None = None
    per: str = "content"
    seed: int = 0
    used: Counter[str] = field(default_factory=Counter)
    uses: int = 0

    def matches(self, asked: Asked, content: str, in_flight: int) -> bool:
        """Whether the rule is about this request."""
        return (
            (self.times is None or self.uses < self.times)
            and (self.model is None or self.model == asked.model)
            and (self.path is None or asked.path.endswith(self.path))
            and (self.contains is None or self.contains in content)
            and (self.calls is None or asked.ordinal in self.calls)
            and (self.every is None or asked.ordinal % self.every == 0)
            and (self.in_flight_over is None or in_flight > self.in_flight_over)
            and (self.share is None or self._is_in_share(asked))
        )

    def _is_in_share(self, asked: Asked) -> bool:
        drawn = xxhash.xxh3_64_intdigest(asked.content_hash.encode(), seed=self.seed) / 2**64
        return drawn < (self.share or 0)

    def next(self, asked: Asked) -> Behaviour:
        """The behaviour for this request; counts it."""
        key = asked.content_hash if self.per == "content" else ""
        place = min(self.used[key], len(self.then) - 1)
        self.used[key] += 1
        self.uses += 1
        return self.then[place]


@dataclass
class Rules:
    """All rules; the first that matches counts, else the default."""

    rules: list[Rule] = field(default_factory=list)
    default: Behaviour = field(default_factory=lambda: OK)

    def add(self, given: Mapping[str, object]) -> None:
        """Adds a rule, or sets the default. Raises TypeError for an unknown field."""
        if "default" in given:
            self.default = as_behaviour(given["default"])
            return
        then = given.get("then", OK)
        several = then if isinstance(then, list) else [then]
        fields = {**given, "then": [as_behaviour(one) for one in several], "seed": len(self.rules)}
        self.rules.append(Rule(**fields))  # pyright: ignore[reportArgumentType]

    def behaviour(self, asked: Asked, content: str, in_flight: int) -> Behaviour:
        """What to do with this request."""
        for rule in self.rules:
            if rule.matches(asked, content, in_flight):
                return rule.next(asked)
        return self.default


def as_behaviour(given: object) -> Behaviour:
    """A behaviour, also from its bare name."""
    return {"kind": given} if isinstance(given, str) else given  # pyright: ignore[reportReturnType]
