"""A model that answers from a list, and shortcuts that the tests of LLM operators share."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from dataflow_assets.operators.llm.operator import Done, LLMOperator
from dataflow_assets.operators.registry import build_operator, operators
from dataflow_assets.serving.calls import Answer, Call

Checked = TypeVar("Checked")
Script = Sequence[object] | Callable[[Call], object]


class ScriptedAsk:
    """An `Ask` without limits or ledger: answers in order or by a function, JSON where they are no text."""

    def __init__(self, script: Script) -> None:
        self.calls: list[Call] = []
        self._script = script

    async def __call__(self, call: Call, check: Callable[[Answer], Checked]) -> Checked:
        self.calls.append(call)
        said = self._script(call) if callable(self._script) else self._script[len(self.calls) - 1]
        await asyncio.sleep(0)
        if isinstance(said, Exception):
            raise said
        if call.kind == "embedding":
            return check(Answer(vector=said))  # pyright: ignore[reportArgumentType]
        return check(Answer((said if isinstance(said, str) else json.dumps(said, ensure_ascii=False),)))


def asking_operators() -> dict[str, type[LLMOperator]]:
    """All operators that ask a model in their own words; what `opendcai_llm` asks is its class's business."""
    own = {name: cls for name, cls in operators().items() if issubclass(cls, LLMOperator)}
    return {name: cls for name, cls in own.items() if name != "opendcai_llm"}


def built(name: str, params: Mapping[str, object] | None = None) -> LLMOperator:
    """The operator of this name."""
    operator = build_operator(name, params or {})
    assert isinstance(operator, LLMOperator)
    return operator


def done(
    name: str, params: Mapping[str, object], row: Mapping[str, object], *script: object
) -> tuple[Done, list[Call]]:
    """What becomes of one row, and the calls that were made, when the model says this."""
    ask = ScriptedAsk(script[0] if len(script) == 1 and callable(script[0]) else script)
    return asyncio.run(built(name, params).do({"row_id": "r0", **row}, ask)), ask.calls


def failure(name: str, params: Mapping[str, object], row: Mapping[str, object], *script: object) -> Exception:
    """The error that the row fails with."""
    try:
        found, _ = done(name, params, row, *script)
    except Exception as error:  # noqa: BLE001  it is what the test looks at
        return error
    raise AssertionError(f"the row did not fail: {found!r}")


def error_class(name: str, params: Mapping[str, object], row: Mapping[str, object], *script: object) -> str:
    """The class of the row's error, as `_failed` shows it."""
    error = failure(name, params, row, *script)
    return getattr(error, "error_class", None) or type(error).__name__


def user(call: Call) -> str:
    """The last message of a call."""
    assert call.messages[-1]["role"] == "user"
    return call.messages[-1]["content"]
