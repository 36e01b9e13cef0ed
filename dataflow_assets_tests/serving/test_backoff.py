"""Waits are random, grow, and are as long as the server asked for."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.serving.backoff import wait_s

SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.integers(0, 5000), st.floats(0.001, 100), st.floats(0.001, 1000))
def test_a_wait_is_above_0_and_at_most_the_doubled_base_and_the_longest(
    seed: int, attempt: int, base_s: float, max_s: float
) -> None:
    wait = wait_s(attempt, base_s, max_s, None, random.Random(seed))
    assert 0 < wait <= min(max_s, base_s * 2.0 ** min(attempt, 500))


@given(SEEDS, st.integers(0, 60), st.floats(-1e9, 1e9))
def test_the_longest_wait_holds_whatever_the_server_asks_for(seed: int, attempt: int, asked: float) -> None:
    wait = wait_s(attempt, 1.0, 60.0, asked, random.Random(seed))
    assert min(asked, 60.0) <= wait <= 60.0 and wait >= 0


@pytest.mark.parametrize(
    ("asked_s", "least_s", "most_s"), [(2.0, 2.0, 3.0), (0.5, 0.5, 1.5), (0.15, 0.15, 1.0), (0.0, 0.0, 1.0)]
)
def test_the_waits_of_case_24(asked_s: float, least_s: float, most_s: float) -> None:
    waits = [wait_s(0, 1.0, 60.0, asked_s, random.Random(seed)) for seed in range(500)]
    assert least_s <= min(waits) and max(waits) <= most_s


def test_rows_that_were_sent_away_together_do_not_come_back_together() -> None:
    chance = random.Random(0)
    waits = [wait_s(0, 1.0, 60.0, 8.0, chance) for _ in range(100)]
    assert len({round(wait, 3) for wait in waits}) > 80
    assert max(waits) > 9.5


def test_the_waits_fill_their_whole_range() -> None:
    chance = random.Random(0)
    waits = sorted(wait_s(3, 1.0, 60.0, None, chance) for _ in range(1000))
    assert waits[100] < 1.2 and waits[-100] > 6.8
