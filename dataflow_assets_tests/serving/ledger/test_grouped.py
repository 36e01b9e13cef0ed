"""Requests at the same time are done together, and each gets its own result."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from dataflow_assets.serving.grouped import Grouped


class Doubler:
    """Doubles numbers; waits in its first group until it is let go. Fails on a negative number."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.go = threading.Event()

    def __call__(self, numbers: list[int]) -> Sequence[int]:
        self.go.wait(30)
        self.groups.append(len(numbers))
        if min(numbers) < 0:
            raise ValueError("negative")
        return [2 * number for number in numbers]


async def _asked(grouped: Grouped[int, int], doubler: Doubler, numbers: range) -> list[int | BaseException]:
    asked = [asyncio.ensure_future(grouped.ask(number)) for number in numbers]
    await asyncio.sleep(0)
    doubler.go.set()
    return await asyncio.gather(*asked, return_exceptions=True)


def test_what_waits_is_done_in_groups_of_the_size_that_was_set() -> None:
    doubler = Doubler()
    grouped = Grouped("test", doubler, most=100)
    assert asyncio.run(_asked(grouped, doubler, range(1001))) == [2 * number for number in range(1001)]
    grouped.close()
    assert sum(doubler.groups) == 1001 and doubler.groups[1:-1] == [100] * len(doubler.groups[1:-1])


def test_an_error_reaches_everyone_in_the_group_and_nobody_after_it() -> None:
    doubler = Doubler()
    grouped = Grouped("test", doubler, most=1)
    results = asyncio.run(_asked(grouped, doubler, range(-1, 2)))
    grouped.close()
    assert [str(result) for result in results] == ["negative", "0", "2"]


def test_two_loops_in_two_threads_get_their_own_results() -> None:
    doubler = Doubler()
    grouped = Grouped("test", doubler, most=100)
    results: dict[int, list[int | BaseException]] = {}

    def loop(first: int) -> None:
        results[first] = asyncio.run(_asked(grouped, doubler, range(first, first + 50)))

    threads = [threading.Thread(target=loop, args=[first]) for first in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grouped.close()
    assert results == {first: list(range(2 * first, 2 * first + 100, 2)) for first in (0, 1000)}


def test_closing_does_what_was_told_before() -> None:
    doubler = Doubler()
    grouped = Grouped("test", doubler, most=10)
    doubler.go.set()
    for number in range(25):
        grouped.tell(number)
    grouped.close()
    assert sum(doubler.groups) == 25


def test_a_cancelled_caller_leaves_the_others_their_results() -> None:
    doubler = Doubler()
    grouped = Grouped("test", doubler, most=10)

    async def ask() -> int:
        first, second = (asyncio.ensure_future(grouped.ask(number)) for number in (1, 2))
        await asyncio.sleep(0)
        first.cancel()
        doubler.go.set()
        return await second

    assert asyncio.run(ask()) == 4
    grouped.close()


def test_asking_after_the_end_is_an_error_and_not_a_wait() -> None:
    grouped = Grouped("test", Doubler(), most=10)
    grouped.close()
    with pytest.raises(RuntimeError, match="closed"):
        grouped.tell(1)
