"""Keeps calls within the set rates, and as many in flight as the server takes."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

# So late may a call be sent without holding up those behind it. The spacing is wider by this much
# of a second, so that lateness never brings more than the rate into one second.
_LATE_S = 0.01
_EXACT_S = 1e-9
_DECREASE = 0.7
_SLOW = 3.0
_SMOOTHING = 0.05
_DRIFT = 0.002


class Slots:
    """Lets at most `width` in at a time, first come, first served. A cancelled waiter loses no slot.

    Bound to no event loop: it can be used in one after the other.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._inside = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def inside(self) -> int:
        """How many are in now."""
        return self._inside

    def resize(self, width: int) -> None:
        """Changes how many are let in; who is in stays."""
        self._width = width
        self._admit()

    async def __aenter__(self) -> None:
        if self._inside < self._width and not self._waiters:
            self._inside += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._abandon(turn)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._inside -= 1
        self._admit()

    def _abandon(self, turn: "asyncio.Future[None]") -> None:
        """Gives back what a cancelled waiter had: its slot if it was let in just now, else its place."""
        if not turn.cancelled():
            self._inside -= 1
        elif turn in self._waiters:
            self._waiters.remove(turn)
        self._admit()

    def _admit(self) -> None:
        """Lets in as many waiters as there is room for."""
        while self._waiters and self._inside < self._width:
            turn = self._waiters.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)


class RateLimit:
    """Spaces units (requests or tokens) evenly, first come, first served; None limits nothing.

    In no second do more than `per_minute` / 60 units go out, plus the one reservation that is sent at
    its start: there is no burst after a rest, and none when the event loop comes late. The price is
    one percent of the rate. An amount above `per_minute` goes out alone, when its share of time has
    passed. The algorithm is the virtual scheduling one of GCRA (ITU-T I.371).
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute or 0.0
        self._interval_s = 60.0 * (1.0 + _LATE_S) / per_minute if per_minute else 0.0
        self._clock = clock
        self._free_at = clock() - _LATE_S
        self._line = Slots(1)
        self._alarm: asyncio.Future[None] | None = None

    async def reserve(self, amount: float) -> None:
        """Waits until `amount` units may go out. A reservation that is cancelled takes nothing."""
        if not self._interval_s:
            return
        async with self._line:
            self._free_at = max(self._free_at, self._clock() - _LATE_S)  # a rest is not saved up
            share_s = amount * self._interval_s
            ahead_s = share_s if amount > self._per_minute else 0.0
            while (wait_s := self._free_at + ahead_s - self._clock()) > _EXACT_S:
                await self._sleep(wait_s)
            self._free_at = max(self._free_at, self._clock() - _LATE_S - ahead_s) + share_s

    def settle(self, reserved: float, used: float) -> None:
        """Gives back what was reserved and not used; takes what was used beyond it."""
        self._free_at += (used - reserved) * self._interval_s
        if used < reserved and self._alarm is not None and not self._alarm.done():
            self._alarm.set_result(None)

    async def _sleep(self, seconds: float) -> None:
        """Sleeps, or until units are given back."""
        loop = asyncio.get_running_loop()
        alarm = self._alarm = loop.create_future()
        timer = loop.call_later(seconds, _ring, alarm)
        try:
            await alarm
        finally:
            self._alarm = None
            timer.cancel()


def _ring(alarm: "asyncio.Future[None]") -> None:
    if not alarm.done():
        alarm.set_result(None)


class AdaptiveConcurrency:
    """How many calls are in flight: at most `limit`, fewer while the server is overloaded.

    Starts at the limit. An overload takes 30%, once for all calls that were in flight then; each
    success gives back a share, so that a round of them is one more. When the smoothed latency is over
    three times its slow-moving minimum, each round takes one instead, down to half the limit: answers
    may just be longer now. Source: AIMD (Chiu and Jain 1989); the latency rule is after TCP Vegas.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._current = float(limit)
        self._slots = Slots(limit)
        self._old_calls = 0
        self._latency_s: float | None = None
        self._least_s = 0.0

    @property
    def current(self) -> int:
        """How many calls may be in flight now; at least 1."""
        return int(self._current)

    def slot(self) -> AbstractAsyncContextManager[None]:
        """The place of one call: `async with limit.slot():`. First come, first served."""
        return self._slots

    def overloaded(self) -> None:
        """A call came back with 429 or 503, or timed out."""
        if self._is_of_this_round():
            self._resize(self._current * _DECREASE)

    def succeeded(self, latency_s: float) -> None:
        """A call was answered after `latency_s` seconds."""
        if not self._slow(latency_s):
            self._is_of_this_round(begin=False)
            self._grow()
        elif self._current > self._limit / 2 and self._is_of_this_round():
            self._resize(max(self._limit / 2, self._current - 1.0))

    def _is_of_this_round(self, begin: bool = True) -> bool:
        """Whether the call that ended was sent after the last cut; `begin` starts a new round then."""
        if self._old_calls:
            self._old_calls -= 1
            return False
        if begin:
            self._old_calls = max(0, self._slots.inside - 1)
        return True

    def _slow(self, latency_s: float) -> bool:
        """Takes the latency into the mean, and says whether that is far over its minimum."""
        if self._latency_s is None:
            self._latency_s = self._least_s = latency_s
        self._latency_s += (latency_s - self._latency_s) * _SMOOTHING
        self._least_s = min(self._least_s * (1.0 + _DRIFT), self._latency_s)
        return self._latency_s > _SLOW * self._least_s

    def _grow(self) -> None:
        if self._current < self._limit:
            self._resize(min(float(self._limit), self._current + 1.0 / self._current))

    def _resize(self, current: float) -> None:
        self._current = max(1.0, current)
        self._slots.resize(int(self._current))
