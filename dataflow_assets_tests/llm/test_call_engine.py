"""The engine of calls: what is a row's own error, and what ends the run."""

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of, table_of
from dataflow_assets.control import StopFlag
from dataflow_assets.engines.calls import Asked, CallEngine
from dataflow_assets.errors import LedgerError, Paused, Stopped
from dataflow_assets.operators.llm.operator import Ask, Done, LLMOperator, Rejected, ServingParams
from dataflow_assets.serving.budget import Budget
from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.client import Client
from dataflow_assets.serving.ledger import Ledger, Where
from dataflow_assets.serving.spec import OpenAISpec

ROWS = {"row_id": [f"r:{n}" for n in range(6)], "text": [f"row {n}" for n in range(6)]}
TABLE = table_of(ROWS, {"row_id": "string", "text": "string"})


class Careless(LLMOperator):
    """Asks about `text`, and takes no notice of what goes wrong."""

    name = "careless"

    def writes(self):
        return {"answer": "string"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        call = Call(({"role": "user", "content": str(row["text"])},), {"max_tokens": 5})
        try:
            return {"answer": await ask(call, lambda answer: answer.text)}
        except CallFailed as error:
            return Rejected(error.error_class)
        except Exception:  # noqa: BLE001  the operator of this test is careless
            return {"answer": ""}


class Serving:
    """Answers with what it is given for each call: a text, or an error."""

    model, supports_n = "m", False

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.calls = 0

    async def send(self, call: Call) -> Answer:
        self.calls += 1
        await asyncio.sleep(0)
        return Answer((self.answer(call.messages[0]["content"]),), 1, 1)

    async def close(self) -> None:
        """Holds nothing."""


def engine(folder: Path, serving: Serving, ledger: Ledger | None = None) -> CallEngine:
    async def client() -> Client:
        kept = ledger or Ledger.at(folder / "ledger.sqlite")
        where = Where("p@1", "s")
        spec = OpenAISpec(model="m", max_retries=0, concurrency=2)
        return Client(spec, serving, kept, where, Budget.of(None, None, kept, where))

    return CallEngine(client, rows_in_hand=4)


def ran(folder: Path, serving: Serving, ledger: Ledger | None = None) -> Asked:
    made = engine(folder, serving, ledger)
    try:
        return made.run(Careless(), TABLE)
    finally:
        made.close()


def test_rows_come_out_in_their_order_and_usage_adds_up(tmp_path: Path) -> None:
    outcome, usage = ran(tmp_path, Serving(str.upper))
    assert [row["answer"] for row in rows_of(outcome.kept)] == [f"ROW {n}" for n in range(6)]
    assert (usage.calls, usage.tokens_in, usage.tokens_out) == (6, 6, 6)


def test_the_usage_column_holds_what_it_says_however_the_answer_came(tmp_path: Path) -> None:
    operator = Careless(ServingParams(usage_column="usage"))
    made = engine(tmp_path, Serving(str.upper))
    asked = [made.run(operator, TABLE) for _ in range(2)]
    made.close()
    assert [(each.usage.calls, each.usage.cached) for each in asked] == [(6, 0), (0, 6)]
    told = {"tokens_in": 1, "tokens_out": 1, "cost": 0.0}
    assert all(row["usage"] == told for each in asked for row in rows_of(each.outcome.kept))
    description = ServingParams.model_fields["usage_column"].description or ""
    assert set(re.findall("`(.+?)`", description)) == set(told)


def test_a_failed_call_is_its_rows_own(tmp_path: Path) -> None:
    def answer(text: str) -> str:
        if text == "row 3":
            raise CallFailed("bad_request", "no")
        return text

    outcome, _usage = ran(tmp_path, Serving(answer))
    assert outcome.kept.num_rows == 5
    assert outcome.rejected is not None and outcome.rejected["row_id"].to_pylist() == ["r:3"]


@pytest.mark.parametrize("error", [Paused("no money", "budget"), LedgerError("the disk is full")])
def test_what_is_wrong_for_all_ends_the_run_though_the_operator_swallows_it(
    tmp_path: Path, error: Exception
) -> None:
    def answer(text: str) -> str:
        if text == "row 1":
            raise error
        return text

    with pytest.raises(type(error), match=str(error)):
        ran(tmp_path, Serving(answer))


def test_a_stop_sends_no_further_call(tmp_path: Path) -> None:
    stop, begun = StopFlag(), threading.Event()

    def answer(text: str) -> str:
        begun.set()
        stop.signal = 15
        return text

    serving = Serving(answer)
    made = engine(tmp_path, serving)
    made.begin(stop)
    with pytest.raises(Stopped):
        while True:  # a batch that was in time is made; the next one is not
            made.run(Careless(), TABLE)
    made.close()
    assert begun.is_set() and serving.calls <= 6


def test_a_closed_engine_begins_nothing(tmp_path: Path) -> None:
    made = engine(tmp_path, Serving(str.upper))
    made.close()
    with pytest.raises(Stopped):
        made.run(Careless(), TABLE)


def test_the_turns_of_threads_are_the_usual_ones_after_the_last_engine(tmp_path: Path) -> None:
    usual = sys.getswitchinterval()
    first, second = (engine(tmp_path, Serving(str.upper)) for _ in range(2))
    first.run(Careless(), TABLE)
    second.run(Careless(), TABLE)
    first.close()
    assert sys.getswitchinterval() < usual
    second.close()
    assert sys.getswitchinterval() == pytest.approx(usual)
