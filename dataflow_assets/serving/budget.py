"""Ceilings of cost and tokens that hold across resumes: reserved before sending, settled after."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dataflow_assets.errors import Paused
from dataflow_assets.serving.spec import BudgetSpec, Ceiling
from dataflow_assets.serving.usage import shown_cost

if TYPE_CHECKING:
    from dataflow_assets.serving.ledger import Spent, Where


class Account(Protocol):
    """Where spend is kept: the ledger."""

    def spent(self, pipeline: str, step: str | None = None, since: float | None = None) -> "Spent":
        """What was spent."""
        ...

    async def lease(self, where: "Where", cost: float, tokens: int) -> None:
        """Durably notes what the calls in flight may cost at most."""
        ...

    async def release(self, where: "Where") -> None:
        """Nothing is in flight."""
        ...


class Reserved(NamedTuple):
    """The most that one call may cost."""

    cost: float
    tokens: int


@dataclass
class _Line:
    """One ceiling, and what counts against it so far."""

    name: str
    ceiling: Ceiling
    cost: float
    tokens: int

    def holds(self, cost: float, tokens: int) -> bool:
        max_cost, max_tokens = self.ceiling.max_cost, self.ceiling.max_tokens
        return (max_cost is None or self.cost + cost <= max_cost) and (
            max_tokens is None or self.tokens + tokens <= max_tokens
        )

    def shown(self) -> str:
        """How much of the ceiling is used, in words."""
        parts = []
        if self.ceiling.max_cost is not None:
            parts.append(f"{shown_cost(self.cost)} of {shown_cost(self.ceiling.max_cost)} in cost")
        if self.ceiling.max_tokens is not None:
            parts.append(f"{self.tokens} of {self.ceiling.max_tokens} tokens")
        return f"the budget of {self.name} has {' and '.join(parts)} used"


GO_ON = "; raise the budget and resume"


class Budget:
    """The ceilings that one step must keep: its own, its pipeline's, and those of the month.

    A call is sent only when the most that it may cost fits below every ceiling beside what was spent
    and what is in flight. Where it does not fit, it waits for calls in flight, which mostly cost less
    than was reserved; with none in flight Paused is raised. What is in flight is noted durably before
    it is sent, so that a kill counts it as spent.
    """

    def __init__(self, lines: Sequence[_Line], account: Account, where: "Where") -> None:
        self._lines = lines
        self._account = account
        self._where = where
        self._flying = Reserved(0.0, 0)
        self._leased = Reserved(0.0, 0)
        self._settled = asyncio.Condition()
        self._leasing = asyncio.Lock()

    @classmethod
    def of(
        cls, step: BudgetSpec | None, pipeline: BudgetSpec | None, account: Account, where: "Where"
    ) -> "Budget":
        """The budget of this step, with what was spent until now."""
        lines = []
        for name, spec, of_step in (
            (f"step {where.step!r}", step, where.step),
            ("the pipeline", pipeline, None),
        ):
            for ceiling, monthly in spec.ceilings() if spec else []:
                since = month_start(time.time()) if monthly else None
                spent = account.spent(where.pipeline, of_step, since)
                used = spent.tokens_in + spent.tokens_out
                lines.append(_Line(f"{name} this month" if monthly else name, ceiling, spent.cost, used))
        return cls(lines, account, where)

    def __bool__(self) -> bool:
        return bool(self._lines)

    async def reserve(self, call: Reserved) -> None:
        """Returns when the call may be sent. Raises Paused where it never fits."""
        if not self._lines:
            return
        async with self._settled:
            while (line := self._in_the_way(call)) is not None:
                if not self._flying.tokens and not self._flying.cost:
                    raise Paused(
                        f"{line.shown()}, and one more call may cost {shown_cost(call.cost)} and "
                        f"{call.tokens} tokens{GO_ON}",
                        cause="budget",
                    )
                await self._settled.wait()
            self._flying = Reserved(self._flying.cost + call.cost, self._flying.tokens + call.tokens)
        await self._lease()

    def _in_the_way(self, call: Reserved) -> _Line | None:
        cost, tokens = self._flying.cost + call.cost, self._flying.tokens + call.tokens
        return next((line for line in self._lines if not line.holds(cost, tokens)), None)

    async def _lease(self) -> None:
        """Keeps the durable note above what is in flight; doubled, so that it is seldom written."""
        async with self._leasing:
            if self._flying.cost <= self._leased.cost and self._flying.tokens <= self._leased.tokens:
                return
            self._leased = Reserved(self._flying.cost * 2, self._flying.tokens * 2)
            await self._account.lease(self._where, self._leased.cost, self._leased.tokens)

    async def settle(self, call: Reserved, cost: float, tokens: int) -> None:
        """The call is over and was billed with this."""
        if not self._lines:
            return
        async with self._settled:
            flying = Reserved(self._flying.cost - call.cost, self._flying.tokens - call.tokens)
            self._flying = flying if flying.tokens > 0 else Reserved(0.0, 0)
            for line in self._lines:
                line.cost += cost
                line.tokens += tokens
            self._settled.notify_all()

    async def close(self) -> None:
        """Nothing is in flight any more."""
        if self._leased.tokens:
            await self._account.release(self._where)
            self._leased = Reserved(0.0, 0)


def month_start(now: float) -> float:
    """The first second of the month of `now` (UTC), in seconds since the epoch."""
    day = datetime.fromtimestamp(now, timezone.utc)
    return day.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
