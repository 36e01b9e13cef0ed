"""Ceilings: what counts against them, and when a call must wait or stop."""

import asyncio
import time
from pathlib import Path

import pytest

from dataflow_assets.errors import Paused
from dataflow_assets.serving.budget import Budget, Reserved, month_start
from dataflow_assets.serving.ledger import Ledger, Where
from dataflow_assets.serving.spec import BudgetSpec, Ceiling
from dataflow_assets.serving.usage import shown_cost

WHERE, OTHER = Where("p@1", "a"), Where("p@1", "b")
DAY_S = 86_400


def spend(path: Path, where: Where, cost: float, days_ago: int = 0) -> None:
    with Ledger.at(path, clock=lambda: time.time() - days_ago * DAY_S) as ledger:
        asyncio.run(ledger.spend(where, "m", 10, 0, cost))


def fits(path: Path, step: BudgetSpec | None, pipeline: BudgetSpec | None, cost: float) -> bool:
    async def reserve() -> None:
        budget = Budget.of(step, pipeline, ledger, WHERE)
        await budget.reserve(Reserved(cost, 1))
        await budget.close()

    with Ledger.at(path) as ledger:
        try:
            asyncio.run(reserve())
        except Paused:
            return False
    return True


@pytest.mark.parametrize(("cost", "fitting"), [(4.0, True), (4.1, False)])
def test_a_steps_ceiling_counts_its_own_spend(tmp_path: Path, cost: float, fitting: bool) -> None:
    path = tmp_path / "ledger.sqlite"
    spend(path, WHERE, 6.0)
    spend(path, OTHER, 100.0)
    assert fits(path, BudgetSpec(max_cost=10.0), None, cost) is fitting


@pytest.mark.parametrize(
    ("cost", "text"), [(0, "0.0000"), (4.2e-05, "0.000042"), (0.012, "0.0120"), (1234.5, "1,234.5000")]
)
def test_a_small_cost_is_shown_by_two_digits(cost: float, text: str) -> None:
    assert shown_cost(cost) == text


def test_what_is_in_the_way_is_told_with_enough_digits(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    spend(path, WHERE, 0.00002)
    with Ledger.at(path) as ledger:
        budget = Budget.of(BudgetSpec(max_cost=0.00005), None, ledger, WHERE)
        with pytest.raises(Paused, match=r"0\.000020 of 0\.000050 in cost .* may cost 0\.000042 and"):
            asyncio.run(budget.reserve(Reserved(0.000042, 1)))


def test_a_pipelines_ceiling_counts_all_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    spend(path, OTHER, 9.0)
    assert fits(path, None, BudgetSpec(max_cost=10.0), 1.0)
    assert not fits(path, None, BudgetSpec(max_cost=10.0), 1.5)


def test_a_months_ceiling_forgets_the_months_before(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    spend(path, WHERE, 100.0, days_ago=32)
    spend(path, WHERE, 3.0)
    budget = BudgetSpec(month=Ceiling(max_cost=10.0))
    assert fits(path, None, budget, 7.0)
    assert not fits(path, None, budget, 7.5)


def test_a_call_waits_for_those_in_flight_which_mostly_cost_less(tmp_path: Path) -> None:
    async def talk(ledger: Ledger) -> None:
        budget = Budget.of(BudgetSpec(max_cost=10.0), None, ledger, WHERE)
        await budget.reserve(Reserved(8.0, 1))
        waiting = asyncio.ensure_future(budget.reserve(Reserved(8.0, 1)))
        await asyncio.sleep(0)
        assert not waiting.done()
        await budget.settle(Reserved(8.0, 1), 1.0, 1)
        await waiting

    with Ledger.at(tmp_path / "ledger.sqlite") as ledger:
        asyncio.run(talk(ledger))


def test_the_month_begins_on_its_first_day_in_utc() -> None:
    assert month_start(1_795_983_068.4) == 1_793_491_200.0
