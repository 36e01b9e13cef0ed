"""The client: ledger, sharing, retries, breaker and budget around a serving, without a server."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from dataflow_assets.errors import Paused
from dataflow_assets.serving.budget import Budget
from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.client import Client
from dataflow_assets.serving.ledger import Ledger, Where
from dataflow_assets.serving.spec import BudgetSpec, OpenAISpec, Price
from dataflow_assets.serving.usage import Usage

WHERE = Where("p@1", "s")
Outcome = Answer | CallFailed


class Played:
    """Plays outcomes in order, the last one for ever; counts, and notes how many were in flight."""

    def __init__(self, *outcomes: Outcome, model: str = "m") -> None:
        self.model, self.supports_n = model, False
        self.outcomes = outcomes
        self.sent: list[Call] = []
        self.flying = self.most = 0

    async def send(self, call: Call) -> Answer:
        self.sent.append(call)
        self.flying += 1
        self.most = max(self.most, self.flying)
        await asyncio.sleep(0)
        self.flying -= 1
        outcome = self.outcomes[min(len(self.sent), len(self.outcomes)) - 1]
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Holds nothing."""


def call(text: str = "hi", **parameters: object) -> Call:
    return Call(({"role": "user", "content": text},), {"max_tokens": 10, **parameters})


GOOD = Answer(("yes",), tokens_in=2, tokens_out=3, finish_reasons=("stop",))
DOWN = CallFailed("server_error", "500", status=500)
NO_KEY = CallFailed("auth", "401 bad key", status=401)


def talked(
    path: Path,
    serving: Played,
    talk: Callable[[Client], Awaitable[object]],
    budget: BudgetSpec | None = None,
    waits: list[float] | None = None,
    **spec: object,
) -> object:
    """What `talk` gives with a client whose waits are noted and not waited."""

    async def run() -> object:
        async def sleep(seconds: float) -> None:
            (waits if waits is not None else []).append(seconds)

        ledger = Ledger.at(path / "ledger.sqlite")
        ledger.settle_leases(*WHERE)
        model = OpenAISpec.model_validate(
            {"model": serving.model, "price": Price(input=1e6, output=1e6), **spec}
        )
        client = Client(model, serving, ledger, WHERE, Budget.of(None, budget, ledger, WHERE), sleep=sleep)
        try:
            return await talk(client)
        finally:
            await client.close()

    return asyncio.run(run())


def asking(*calls: Call, usage: Usage | None = None) -> Callable[[Client], Awaitable[Sequence[object]]]:
    """Asks all calls at once; gives texts and errors in order."""

    async def talk(client: Client) -> Sequence[object]:
        counted = usage or Usage()
        asked = (client.ask(one, lambda answer: answer.text, counted) for one in calls)
        return await asyncio.gather(*asked, return_exceptions=True)

    return talk


def test_an_answer_is_paid_for_once_whoever_asks_again(tmp_path: Path) -> None:
    serving, again = Played(GOOD), Played(GOOD)
    assert talked(tmp_path, serving, asking(call())) == ["yes"]
    assert talked(tmp_path, again, asking(call())) == ["yes"]
    assert (len(serving.sent), len(again.sent)) == (1, 0)


def test_equal_calls_at_the_same_time_are_sent_once(tmp_path: Path) -> None:
    serving, usage = Played(GOOD), Usage()
    assert talked(tmp_path, serving, asking(call(), call(), call(), usage=usage)) == ["yes"] * 3
    assert (len(serving.sent), usage.calls, usage.cached) == (1, 1, 2)


def test_other_parameters_are_another_call(tmp_path: Path) -> None:
    serving = Played(GOOD)
    talked(tmp_path, serving, asking(call(temperature=0.0), call(temperature=1.0)))
    assert len(serving.sent) == 2


def test_a_failure_that_may_pass_is_tried_again_as_often_as_allowed(tmp_path: Path) -> None:
    serving = Played(DOWN)
    (error,) = talked(tmp_path, serving, asking(call()), max_retries=2)
    assert isinstance(error, CallFailed) and error.attempts == 3
    assert len(serving.sent) == 3


def test_what_is_wrong_for_ever_is_sent_once(tmp_path: Path) -> None:
    serving = Played(CallFailed("bad_request", "400", status=400))
    (error,) = talked(tmp_path, serving, asking(call()))
    assert isinstance(error, CallFailed) and error.error_class == "bad_request"
    assert len(serving.sent) == 1


def test_the_server_says_how_long_to_wait(tmp_path: Path) -> None:
    waits: list[float] = []
    slow = CallFailed("rate_limited", "429", status=429, retry_after_s=2.0)
    assert talked(tmp_path, Played(slow, GOOD), asking(call()), waits=waits) == ["yes"]
    assert 2.0 <= waits[0] <= 3.0


def test_a_wrong_key_pauses_instead_of_failing_every_row(tmp_path: Path) -> None:
    serving = Played(NO_KEY)

    async def talk(client: Client) -> list[object]:
        return [(await asking(call(str(n)))(client))[0] for n in range(5)]

    errors = talked(tmp_path, serving, talk, breaker=3)
    assert [type(error) for error in errors] == [CallFailed, CallFailed, Paused, Paused, Paused]
    assert len(serving.sent) == 3


def test_an_answer_that_fails_its_check_is_asked_for_again_and_not_kept(tmp_path: Path) -> None:
    serving = Played(Answer(("no",), 1, 1), GOOD)

    def check(answer: Answer) -> str:
        if answer.text == "no":
            raise CallFailed("schema_invalid", "not yes")
        return answer.text

    async def talk(client: Client) -> str:
        return await client.ask(call(), check, Usage())

    assert talked(tmp_path, serving, talk) == "yes"
    assert talked(tmp_path, Played(NO_KEY), talk) == "yes"


def test_what_a_useless_answer_cost_is_counted(tmp_path: Path) -> None:
    usage = Usage()
    cut = CallFailed("truncated", "length", tokens_in=4, tokens_out=6)
    talked(tmp_path, Played(cut), asking(call(), usage=usage))
    assert (usage.tokens_in, usage.tokens_out, usage.cost) == (4, 6, 10.0)
    assert Ledger.at(tmp_path / "ledger.sqlite").spent("p@1").cost == 10.0


def test_samples_are_asked_for_one_by_one_where_the_server_has_no_n(tmp_path: Path) -> None:
    serving = Played(GOOD)
    sampled = Call(({"role": "user", "content": "hi"},), {"max_tokens": 5, "seed": 7}, n=3)

    async def talk(client: Client) -> tuple[str, ...]:
        return await client.ask(sampled, lambda answer: answer.texts, Usage())

    assert talked(tmp_path, serving, talk) == ("yes", "yes", "yes")
    assert [one.parameters["seed"] for one in serving.sent] == [7, 8, 9]


def test_no_more_calls_are_in_flight_than_set(tmp_path: Path) -> None:
    serving = Played(GOOD)
    talked(tmp_path, serving, asking(*(call(str(n)) for n in range(50))), concurrency=4)
    assert serving.most == 4


def test_a_budget_pauses_before_the_call_that_might_break_it(tmp_path: Path) -> None:
    serving = Played(GOOD)
    calls = [call(f"row {n}") for n in range(20)]
    results = talked(tmp_path, serving, asking(*calls), budget=BudgetSpec(max_tokens=120))
    spent = Ledger.at(tmp_path / "ledger.sqlite").spent("p@1")
    assert spent.tokens_in + spent.tokens_out <= 120
    assert {type(result) for result in results} == {str, Paused}
    assert next(result for result in results if isinstance(result, Paused)).cause == "budget"


def test_a_budget_holds_across_runs(tmp_path: Path) -> None:
    for run in range(4):
        calls = [call(f"row {run} {n}") for n in range(20)]
        talked(tmp_path, Played(GOOD), asking(*calls), budget=BudgetSpec(max_cost=200.0))
        assert Ledger.at(tmp_path / "ledger.sqlite").spent("p@1").cost <= 200.0


def test_what_a_killed_run_had_in_flight_counts_as_spent(tmp_path: Path) -> None:
    ledger = Ledger.at(tmp_path / "ledger.sqlite")
    asyncio.run(ledger.lease(WHERE, 150.0, 150))
    (result,) = talked(tmp_path, Played(GOOD), asking(call()), budget=BudgetSpec(max_tokens=160))
    assert isinstance(result, Paused)


def test_a_vector_that_json_cannot_hold_fails(tmp_path: Path) -> None:
    serving = Played(Answer(vector=(0.5, math.nan)), Answer(vector=(0.5, 1.0)))

    async def talk(client: Client) -> object:
        embedding = Call(({"role": "user", "content": "hi"},), kind="embedding")
        return await client.ask(embedding, lambda answer: answer.vector, Usage())

    assert talked(tmp_path, serving, talk) == (0.5, 1.0)


@pytest.mark.parametrize("cancel_after", range(0, 30, 3))
def test_a_call_that_was_sent_is_kept_though_its_row_is_stopped(tmp_path: Path, cancel_after: int) -> None:
    serving = Played(GOOD)

    async def talk(client: Client) -> None:
        rows = [asyncio.ensure_future(asking(call(str(n)))(client)) for n in range(10)]
        for _ in range(cancel_after):
            await asyncio.sleep(0)
        for row in rows:
            row.cancel()
        await client.drain()

    talked(tmp_path, serving, talk, concurrency=3)
    sent = [one.messages[0]["content"] for one in serving.sent]
    again = Played(GOOD)
    talked(tmp_path, again, asking(*(call(text) for text in sent)))
    assert again.sent == []
