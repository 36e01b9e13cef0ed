"""Rates are never exceeded, places are never lost, and waiters come in order."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.serving.limits import AdaptiveConcurrency, RateLimit, Slots
from dataflow_assets_tests.serving.virtual_time import now, run_at_once


async def _times(per_minute: float, amounts: list[float]) -> list[float]:
    """When reservations of these amounts, all asked for at once, are granted."""
    limit, granted = RateLimit(per_minute, now), []

    async def one(amount: float) -> None:
        await limit.reserve(amount)
        granted.append(now())

    await asyncio.gather(*map(one, amounts))
    return granted


def _most_in_a_second(times: list[float]) -> int:
    return max(sum(start <= time < start + 1 for time in times) for start in times)


@pytest.mark.parametrize("late_s", [0.0, 0.003, 0.3])
@pytest.mark.parametrize("per_minute", [30.0, 60.0, 600.0, 6000.0])
def test_no_second_has_more_than_its_share_and_one(per_minute: float, late_s: float) -> None:
    times = run_at_once(_times(per_minute, [1.0] * 300), late_s)
    assert _most_in_a_second(times) <= per_minute / 60 + 1


@pytest.mark.parametrize(("per_minute", "late_s"), [(30.0, 0.005), (600.0, 0.002), (30000.0, 0.004)])
def test_timers_that_ring_late_cost_at_most_two_percent_of_the_rate(per_minute: float, late_s: float) -> None:
    times = run_at_once(_times(per_minute, [1.0] * 500), late_s)
    assert times[-1] - times[0] < 499 * 60 / per_minute * 1.02


def test_a_rest_is_not_saved_up_for_a_burst() -> None:
    async def times() -> list[float]:
        limit, granted = RateLimit(600, now), []
        for rest_s in [0.0, 100.0, *[0.0] * 20]:
            await asyncio.sleep(rest_s)
            await limit.reserve(1)
            granted.append(now())
        return granted

    assert _most_in_a_second(run_at_once(times())) <= 11


def test_reservations_are_granted_in_the_order_in_which_they_were_asked_for() -> None:
    async def order() -> list[int]:
        limit, granted = RateLimit(600, now), []

        async def one(place: int) -> None:
            await limit.reserve(1 + place % 7)
            granted.append(place)

        await asyncio.gather(*map(one, range(50)))
        return granted

    assert run_at_once(order()) == list(range(50))


def test_an_amount_above_the_limit_waits_its_share_of_time_and_not_for_ever() -> None:
    first, second = run_at_once(_times(60, [600.0, 1.0]))
    assert first == pytest.approx(600, rel=0.02) and second >= first


def test_what_was_not_used_wakes_up_who_waits_for_it() -> None:
    async def waited_s() -> float:
        limit = RateLimit(60, now)
        await limit.reserve(50)
        waiter = asyncio.ensure_future(limit.reserve(1))
        await asyncio.sleep(1)
        limit.settle(50, 2)
        await waiter
        return now()

    assert run_at_once(waited_s()) == pytest.approx(2, rel=0.02)


def test_what_was_used_beyond_the_reservation_is_waited_for() -> None:
    async def waited_s() -> float:
        limit = RateLimit(60, now)
        await limit.reserve(1)
        limit.settle(1, 31)
        await limit.reserve(1)
        return now()

    assert run_at_once(waited_s()) == pytest.approx(31, rel=0.02)


def test_without_a_limit_nothing_waits() -> None:
    async def waited_s() -> float:
        limit = RateLimit(None, now)
        for _ in range(1000):
            await limit.reserve(1e9)
        return now()

    assert run_at_once(waited_s()) == 0


def test_a_cancelled_reservation_takes_nothing() -> None:
    async def waited_s() -> float:
        limit = RateLimit(60, now)
        await limit.reserve(1)
        waiters = [asyncio.ensure_future(limit.reserve(20)) for _ in range(5)]
        await asyncio.sleep(0.1)
        for waiter in waiters:
            waiter.cancel()
        await limit.reserve(1)
        return now()

    assert run_at_once(waited_s()) == pytest.approx(1, rel=0.02)


def test_a_limit_can_be_used_in_one_event_loop_after_the_other() -> None:
    limit, slots = RateLimit(6e6), AdaptiveConcurrency(1)

    async def both(_: int) -> None:
        await limit.reserve(1)
        async with slots.slot():
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*map(both, range(5)))

    asyncio.run(all_of_them())
    asyncio.run(all_of_them())
    assert slots.current == 1


async def _highest(limit: AdaptiveConcurrency, calls: int) -> int:
    """The most calls that were in flight together."""
    inside = highest = 0

    async def one() -> None:
        nonlocal inside, highest
        async with limit.slot():
            inside += 1
            highest = max(highest, inside)
            await asyncio.sleep(1)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(calls)))
    return highest


@pytest.mark.parametrize("limit", [1, 7, 64])
def test_the_full_limit_is_used_from_the_start_and_never_more(limit: int) -> None:
    assert run_at_once(_highest(AdaptiveConcurrency(limit), 200)) == limit


def test_an_overload_takes_three_tenths() -> None:
    limit = AdaptiveConcurrency(10)
    limit.overloaded()
    assert limit.current == 7
    assert run_at_once(_highest(limit, 50)) == 7


def test_calls_that_were_in_flight_together_count_as_one_overload() -> None:
    limit = AdaptiveConcurrency(10)

    async def one() -> None:
        async with limit.slot():
            await asyncio.sleep(1)
            limit.overloaded()

    async def together(calls: int) -> None:
        await asyncio.gather(*(one() for _ in range(calls)))

    run_at_once(together(10))
    assert limit.current == 7
    run_at_once(together(7))
    assert limit.current == 4


def test_overloads_without_end_leave_one_place() -> None:
    limit = AdaptiveConcurrency(64)
    for _ in range(100):
        limit.overloaded()
    assert limit.current == 1


def test_successes_bring_the_limit_back_one_a_round() -> None:
    limit = AdaptiveConcurrency(10)
    limit.overloaded()
    for _ in range(8):
        limit.succeeded(0.2)
    assert limit.current == 8
    for _ in range(100):
        limit.succeeded(0.2)
    assert limit.current == 10


def test_latency_far_over_its_minimum_takes_places_down_to_half_the_limit() -> None:
    limit = AdaptiveConcurrency(32)
    for _ in range(50):
        limit.succeeded(0.1)
    assert limit.current == 32
    for _ in range(300):
        limit.succeeded(2.0)
    assert limit.current == 16


def test_answers_of_very_different_length_take_no_place() -> None:
    limit, chance = AdaptiveConcurrency(32), random.Random(1)
    for _ in range(2000):
        limit.succeeded(chance.choice([0.1, 0.2, 3.0, 5.0]))
    assert limit.current == 32


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(1, 4),
    calls=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.none() | st.integers(0, 8)), max_size=30
    ),
    widths=st.lists(st.integers(1, 4), max_size=5),
)
def test_no_place_is_lost_whoever_is_cancelled_whenever(
    width: int, calls: list[tuple[int, int, int | None]], widths: list[int]
) -> None:
    slots = Slots(width)

    async def one(start: int, length: int) -> None:
        await asyncio.sleep(start)
        async with slots:
            await asyncio.sleep(length)

    async def ends(start: int, length: int, cancelled_at: int | None) -> None:
        task = asyncio.ensure_future(one(start, length))
        if cancelled_at is not None:
            await asyncio.sleep(cancelled_at)
            task.cancel()
        await asyncio.wait([task])

    async def resized() -> None:
        for width in widths:
            await asyncio.sleep(1)
            slots.resize(width)

    async def everything() -> None:
        await asyncio.gather(resized(), *(ends(*call) for call in calls))

    run_at_once(everything())
    assert slots.inside == 0
