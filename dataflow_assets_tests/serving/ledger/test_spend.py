"""What was spent stays counted, whatever becomes of the answers and of the process."""

import asyncio

import pytest

from dataflow_assets.serving.ledger import LOST, Ledger, Spent, Where
from dataflow_assets_tests.serving.ledger.answers import ANSWER, WHERE, put

PIPELINE = WHERE.pipeline
OTHER_STEP = Where(PIPELINE, "judge")


class Clock:
    """A clock that is set by hand, in epoch seconds."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_an_answer_that_is_put_counts_as_spent(ledger: Ledger) -> None:
    put(ledger, "a", "b")
    assert ledger.spent(PIPELINE) == Spent(2, 20, 4, 1.0)


def test_a_billed_failure_counts_too(ledger: Ledger) -> None:
    asyncio.run(ledger.spend(WHERE, "m", 7, 0, 0.25))
    put(ledger, "a")
    assert ledger.spent(PIPELINE) == Spent(2, 17, 2, 0.75)


def test_steps_and_pipelines_are_told_apart(ledger: Ledger) -> None:
    put(ledger, "a")
    put(ledger, "b", where=OTHER_STEP)
    put(ledger, "c", where=Where("synthesis@2", "write"))
    assert ledger.spent(PIPELINE).calls == 2
    assert ledger.spent(PIPELINE, "judge").calls == 1


def test_who_spent_nothing_spent_nothing(ledger: Ledger) -> None:
    assert ledger.spent("unknown", "step", since=0) == Spent(0, 0, 0, 0.0)


def test_spend_since_a_time_leaves_out_what_was_before(place: str) -> None:
    clock = Clock()
    with Ledger(place, clock=clock) as ledger:
        put(ledger, "a")
        clock.now += 86_400
        put(ledger, "b", "c")
        assert [ledger.spent(PIPELINE, since=clock.now - ago).calls for ago in (0, 3600, 90_000)] == [2, 2, 3]


def test_an_answer_that_is_pruned_stays_counted(ledger: Ledger) -> None:
    put(ledger, "a", "b")
    ledger.prune(max_bytes=0)
    assert ledger.stats() == [] and ledger.spent(PIPELINE).cost == 1.0


def test_what_a_killed_run_left_in_flight_is_spent(place: str) -> None:
    with Ledger(place) as killed:
        asyncio.run(killed.lease(WHERE, 3.0, 300))
        asyncio.run(killed.lease(WHERE, 5.0, 500))
        asyncio.run(killed.lease(OTHER_STEP, 1.0, 100))
    with Ledger(place) as ledger:
        assert ledger.settle_leases(PIPELINE) == Spent(0, 0, 600, 6.0)
        assert ledger.spent(PIPELINE) == Spent(0, 0, 600, 6.0)
        assert ledger.settle_leases(PIPELINE) == Spent(0, 0, 0, 0.0)


def test_the_leases_of_other_pipelines_and_steps_are_left(ledger: Ledger) -> None:
    for where in (WHERE, OTHER_STEP, Where("other@1", "write")):
        asyncio.run(ledger.lease(where, 1.0, 100))
    assert ledger.settle_leases(PIPELINE, "judge").cost == 1.0
    assert ledger.settle_leases(PIPELINE).cost == 1.0
    assert ledger.settle_leases("other@1").cost == 1.0


def test_a_released_lease_is_not_spent(ledger: Ledger) -> None:
    asyncio.run(ledger.lease(WHERE, 3.0, 300))
    asyncio.run(ledger.release(WHERE))
    assert ledger.settle_leases(PIPELINE).cost == 0.0


def test_lost_calls_are_no_answers(ledger: Ledger) -> None:
    asyncio.run(ledger.lease(WHERE, 3.0, 300))
    ledger.settle_leases(PIPELINE)
    assert LOST not in [line.model for line in ledger.stats()]


@pytest.mark.parametrize("calls", [1, 300])
def test_many_steps_at_once_lose_no_spend(ledger: Ledger, calls: int) -> None:
    async def spend() -> None:
        steps = [Where(PIPELINE, f"step{number % 7}") for number in range(calls)]
        await asyncio.gather(*(ledger.spend(where, ANSWER.model, 1, 1, 0.5) for where in steps))

    asyncio.run(spend())
    assert ledger.spent(PIPELINE) == Spent(calls, calls, calls, calls / 2)
