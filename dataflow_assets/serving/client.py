"""Asks one serving about many rows: ledger, limits, retries, breaker and budget around each call."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import NamedTuple, TypeVar

from dataflow_assets.serving.backoff import wait_s
from dataflow_assets.serving.breaker import Breaker
from dataflow_assets.serving.budget import Budget, Reserved
from dataflow_assets.serving.calls import Answer, Call, CallFailed, Serving
from dataflow_assets.serving.ledger import Ledger, Where
from dataflow_assets.serving.limits import AdaptiveConcurrency, RateLimit, Slots
from dataflow_assets.serving.prices import cost_of, known_price
from dataflow_assets.serving.spec import ServingSpec
from dataflow_assets.serving.usage import Usage

Checked = TypeVar("Checked")
_OVERLOAD = {"rate_limited", "timeout", "server_error"}
_TURNS_OF_A_SENDING = 4
_UNKNOWN_BILL = {"timeout", "cut_stream"}


class _Sent(NamedTuple):
    """A usable answer, and what `check` made of it."""

    answer: Answer
    checked: object


class Client:
    """Asks one serving for one step. Lives in one event loop.

    A call that is in flight is finished whatever happens to its row: `drain` waits for those. Its
    slot is free when the server has answered. Answers on their way into the ledger, which a kill
    would lose, are at most an eighth of the concurrency above the calls in flight.
    """

    def __init__(
        self,
        spec: ServingSpec,
        serving: Serving,
        ledger: Ledger,
        where: Where,
        budget: Budget,
        use_ledger: bool = True,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._spec = spec
        self._serving = serving
        self._ledger = ledger
        self._where = where
        self._budget = budget
        self._use_ledger = use_ledger
        self._sleep = sleep
        self._price = known_price(spec)
        self._slots = AdaptiveConcurrency(spec.concurrency)
        self._desk = Slots(1)
        self._unkept = Slots(spec.concurrency + max(1, spec.concurrency // 8))
        self._requests = RateLimit(spec.requests_per_minute)
        self._tokens = RateLimit(spec.tokens_per_minute)
        self._breaker = Breaker(spec.breaker)
        self._not_before = 0.0
        self._shared: dict[str, asyncio.Future[Answer]] = {}
        self._flying: set[asyncio.Task[Answer]] = set()
        self._random = random.Random(0)

    async def ask(self, call: Call, check: Callable[[Answer], Checked], usage: Usage) -> Checked:
        """What `check` makes of a usable answer. Raises CallFailed, Paused."""
        call = replace(call, parameters={**self._spec.parameters, **call.parameters})
        if call.n > 1 and not self._serving.supports_n:
            return check(await self._sampled(call, usage))
        return await self._one(call, check, usage)

    async def _sampled(self, call: Call, usage: Usage) -> Answer:
        """One call a sample, as one answer."""
        calls = [replace(call, n=1, sample=call.sample + sample) for sample in range(call.n)]
        seed = call.parameters.get("seed")
        if isinstance(seed, int):
            calls = [
                replace(one, parameters={**one.parameters, "seed": seed + place})
                for place, one in enumerate(calls)
            ]
        answers = await asyncio.gather(*(self._one(one, _as_it_is, usage) for one in calls))
        return Answer(
            texts=tuple(answer.text for answer in answers),
            tokens_in=sum(answer.tokens_in for answer in answers),
            tokens_out=sum(answer.tokens_out for answer in answers),
            model=answers[0].model,
            finish_reasons=tuple(reason for answer in answers for reason in answer.finish_reasons),
            cost=sum(answer.cost for answer in answers),
        )

    async def _one(self, call: Call, check: Callable[[Answer], Checked], usage: Usage) -> Checked:
        """From the ledger, from a row that asks the same now, or from the serving."""
        key = call.key(self._serving.model)
        shared = self._shared.get(key)
        if shared is not None:
            return self._counted(await asyncio.shield(shared), check, usage)
        future = self._shared[key] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_seen)
        try:
            sent = await self._obtained(key, call, check, usage)
        except BaseException as error:
            del self._shared[key]
            failure = CallFailed("connection", "the same call of another row was stopped")
            future.set_exception(failure if isinstance(error, asyncio.CancelledError) else error)
            raise
        del self._shared[key]
        future.set_result(replace(sent.answer, cached=True))
        return sent.checked  # pyright: ignore[reportReturnType]

    def _counted(self, answer: Answer, check: Callable[[Answer], Checked], usage: Usage) -> Checked:
        usage.add(Usage(0, 1, answer.tokens_in, answer.tokens_out, answer.cost))
        return check(answer)

    async def _obtained(self, key: str, call: Call, check: Callable[[Answer], object], usage: Usage) -> _Sent:
        kept = await self._ledger.get(key) if self._use_ledger else None
        if kept is not None:
            try:
                return _Sent(kept, self._counted(kept, check, usage))
            except CallFailed:
                pass  # the answer passed weaker gates: it is asked for again
        return await self._attempted(key, call, check, usage)

    async def _attempted(
        self, key: str, call: Call, check: Callable[[Answer], object], usage: Usage
    ) -> _Sent:
        """Sends the call until it succeeds, fails for good, or the attempts are used up."""
        for attempt in range(self._spec.max_retries + 1):
            self._breaker.check()
            checked: list[object] = []

            def judged(answer: Answer, made: list[object] = checked) -> None:
                made.append(check(answer))

            try:
                return _Sent(await self._sent(key, call, judged, usage), checked[0])
            except CallFailed as failure:
                failure.attempts = attempt + 1
                last = attempt == self._spec.max_retries or not failure.retryable
                if last:
                    self._breaker.failed(failure)
                    self._breaker.check()
                    raise
                spec = self._spec
                wait = wait_s(attempt, spec.backoff_s, spec.max_wait_s, failure.retry_after_s, self._random)
                if failure.error_class == "rate_limited" and failure.retry_after_s is not None:
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                await self._sleep(wait)
        raise AssertionError("the loop returns or raises")

    async def _sent(self, key: str, call: Call, judge: Callable[[Answer], None], usage: Usage) -> Answer:
        """One attempt, as soon as the limits allow it. Once it is sent, it is finished and kept."""
        bound, estimate = self._bound(call), call.max_tokens_in // 3 + (call.max_tokens_out or 0)
        await self._budget.reserve(bound)
        flight, reserved = None, 0
        try:
            await self._tokens.reserve(estimate)
            reserved = estimate
            async with self._unkept, AsyncExitStack() as slot:
                await slot.enter_async_context(self._slots.slot())
                while (wait := self._not_before - time.monotonic()) > 0:
                    await self._sleep(wait)
                await self._requests.reserve(1)
                self._breaker.check()
                flying = self._flight(slot.pop_all(), key, call, judge, usage, bound, estimate)
                flight = asyncio.ensure_future(flying)
                self._flying.add(flight)
                flight.add_done_callback(self._landed)
                return await asyncio.shield(flight)
        finally:
            if flight is None:
                self._tokens.settle(reserved, 0)
                await self._budget.settle(bound, 0.0, 0)

    def _bound(self, call: Call) -> Reserved:
        """The most that the call may cost."""
        tokens_in, tokens_out = call.max_tokens_in, call.max_tokens_out or 0
        return Reserved(cost_of(self._price, tokens_in, tokens_out), tokens_in + tokens_out)

    async def _flight(
        self,
        slot: AsyncExitStack,
        key: str,
        call: Call,
        judge: Callable[[Answer], None],
        usage: Usage,
        bound: Reserved,
        estimate: int,
    ) -> Answer:
        """The call itself: its answer is judged and in the ledger, or what it cost is."""
        started = time.monotonic()
        billed = Usage(calls=1)
        try:
            async with slot:
                answer = await self._serving.send(call)
            self._slots.succeeded(time.monotonic() - started)
            self._breaker.succeeded()
            billed = self._billed(answer.tokens_in, answer.tokens_out)
            answer = replace(answer, cost=billed.cost)
            try:
                await self._judged(answer, judge)
            except CallFailed as failure:
                failure.raw = failure.raw or answer.to_bytes().decode()
                raise
            await self._ledger.put(key, self._where, answer, call)
        except CallFailed as failure:
            if failure.error_class in _OVERLOAD:
                self._slots.overloaded()
            billed = self._billed(*self._tokens_of(failure, billed, bound))
            await self._spend(billed)
            raise
        except Exception:
            await self._spend(billed)
            raise
        finally:
            billed.seconds = time.monotonic() - started
            usage.add(billed)
            used = billed.tokens_in + billed.tokens_out
            self._tokens.settle(estimate, used)
            await self._budget.settle(bound, billed.cost, used)
        return answer

    async def _judged(self, answer: Answer, judge: Callable[[Answer], None]) -> None:
        """Judges one answer at a time, in turns of the loop of its own, after the calls that wait to be sent.

        Answers to calls that were sent together come together. Judged all at once, as the loop would
        have it, they hold up the next calls, which then are sent together again.
        """
        for _ in range(_TURNS_OF_A_SENDING):
            await asyncio.sleep(0)
        async with self._desk:
            await asyncio.sleep(0)
            _check_numbers(answer)
            judge(answer)

    def _billed(self, tokens_in: int, tokens_out: int) -> Usage:
        return Usage(1, 0, tokens_in, tokens_out, cost_of(self._price, tokens_in, tokens_out))

    def _tokens_of(self, failure: CallFailed, billed: Usage, bound: Reserved) -> tuple[int, int]:
        """What a failed call is billed with: what was said of it, or all it can be where nobody knows."""
        tokens = failure.tokens_in or billed.tokens_in, failure.tokens_out or billed.tokens_out
        if any(tokens) or not self._budget or failure.error_class not in _UNKNOWN_BILL:
            return tokens
        return bound.tokens, 0

    async def _spend(self, billed: Usage) -> None:
        if billed.tokens_in or billed.tokens_out:
            tokens = billed.tokens_in, billed.tokens_out
            await self._ledger.spend(self._where, self._serving.model, *tokens, billed.cost)

    def _landed(self, flight: "asyncio.Task[Answer]") -> None:
        self._flying.discard(flight)
        if not flight.cancelled():
            flight.exception()  # seen: its row may be gone

    def sync(self) -> None:
        """Makes all answers so far survive a power cut."""
        self._ledger.sync()

    async def close(self) -> None:
        """Waits for the calls in flight, then frees the serving and the ledger."""
        await self.drain()
        await self._serving.close()
        self._ledger.close()

    async def drain(self) -> None:
        """Waits for the calls in flight; their answers are in the ledger then."""
        while self._flying:
            await asyncio.wait(self._flying)
        await self._budget.close()


def _as_it_is(answer: Answer) -> Answer:
    return answer


def _check_numbers(answer: Answer) -> None:
    """Raises CallFailed for a vector that JSON cannot hold."""
    if answer.vector is not None and not all(map(math.isfinite, answer.vector)):
        raise CallFailed("bad_response", "the vector of the answer holds NaN or infinity, expected numbers")


def _seen(future: "asyncio.Future[Answer]") -> None:
    """Marks a failure as seen: it may be that no other row waits for it."""
    if not future.cancelled():
        future.exception()
