"""Bounds of shares and quantiles: against known values, and how often they are wrong."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.expectations.bounds import chi_square_bound, deviations, quantile_bounds, share_bounds
from dataflow_assets.expectations.judging import is_looked_at


@pytest.mark.parametrize(
    ("cases", "rows", "low", "high"),
    [
        (0, 100, 0, 1 - 0.001 ** (1 / 100)),
        (100, 100, 0.001 ** (1 / 100), 1),
        (5, 100, 0.0075171, 0.1553673),  # quantiles of Beta(5, 96) and Beta(6, 95)
        (0, 0, 0, 1),
    ],
)
def test_few_cases_have_exact_bounds(cases, rows, low, high):
    assert share_bounds(cases, rows) == (pytest.approx(low, abs=2e-5), pytest.approx(high, abs=2e-5))


@settings(deadline=None)
@given(st.integers(1, 5000), st.data())
def test_a_share_is_within_its_bounds_and_they_mirror(rows, data):
    cases = data.draw(st.integers(0, rows))
    low, high = share_bounds(cases, rows)
    assert 0 <= low <= cases / rows <= high <= 1
    assert share_bounds(rows - cases, rows) == (pytest.approx(1 - high), pytest.approx(1 - low))


def test_many_cases_go_on_from_few():
    few, many = share_bounds(49, 1000), share_bounds(50, 1000)
    assert few[0] < many[0] < few[0] + 0.003
    assert few[1] < many[1] < few[1] + 0.003


@pytest.mark.parametrize(("share", "rows"), [(0.01, 150), (0.05, 400), (0.3, 300), (0.5, 5000), (0.99, 200)])
def test_shares_are_outside_of_their_bounds_as_seldom_as_is_said(share, rows):
    random = np.random.default_rng(3)
    drawn, times = np.unique(random.binomial(rows, share, 20_000), return_counts=True)
    bounds = [share_bounds(int(cases), rows, risk=0.005) for cases in drawn]
    above = sum(count for (low, _), count in zip(bounds, times, strict=True) if low > share)
    below = sum(count for (_, high), count in zip(bounds, times, strict=True) if high < share)
    assert max(above, below) / 20_000 <= 0.0075


@pytest.mark.parametrize(("level", "rows"), [(0.5, 100), (0.5, 1000), (0.95, 200), (0.99, 3000), (0.05, 150)])
def test_quantiles_are_outside_of_their_bounds_as_seldom_as_is_said(level, rows):
    random = np.random.default_rng(4)
    outside = np.zeros(2)
    for _ in range(4000):
        low, high = quantile_bounds(random.random(rows), level, risk=0.005)
        outside += (low > level, high < level)
    assert outside.max() / 4000 <= 0.009


def test_too_few_values_bound_no_quantile():
    assert quantile_bounds(np.arange(20.0), 0.99) == (16.0, math.inf)


def test_chi_square_is_near_its_tables():
    assert [chi_square_bound(freedom, 0.001) for freedom in (1, 9, 50)] == [
        pytest.approx(found, rel=0.035) for found in (10.83, 27.88, 86.66)
    ]
    assert deviations(0.001) == pytest.approx(3.0902, abs=1e-4)


def test_of_many_batches_rules_are_looked_at_in_steps_that_grow():
    looks = [batches for batches in range(1, 5001) if is_looked_at(batches)]
    assert looks[:25] == [*range(1, 21), 22, 24, 26, 28, 30]
    assert len(looks) < 120
    assert all(later <= earlier * 1.1 + 1 for earlier, later in itertools.pairwise(looks))
