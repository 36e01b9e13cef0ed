"""The serving that an operator of open-dataflow asks: its calls go through ours, the ledger and budgets."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

from dataflow_assets.batch import json_text
from dataflow_assets.errors import Stopped
from dataflow_assets.operators.llm.operator import Ask
from dataflow_assets.serving.calls import Answer, Call, CallFailed, Message

_SYSTEM = "You are a helpful assistant"


class RowServing:
    """Has the interface of open-dataflow's `LLMServingABC` for one row, which asks from its own thread.

    A call that brings no usable answer is raised to the operator, and kept as `error`: many operators
    catch whatever is raised and go on with an empty text. Equal calls of one row are asked each.
    """

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop, parameters: Mapping[str, object]) -> None:
        self._ask, self._loop, self._parameters = ask, loop, parameters
        self._asked: Counter[tuple[str, str]] = Counter()
        self._pending: Future[list[Answer]] | None = None
        self._is_over = False
        self.error: BaseException | None = None

    def generate_from_input(
        self,
        user_inputs: Sequence[str],
        system_prompt: str = _SYSTEM,
        json_schema: Mapping[str, object] | None = None,
        **_: object,
    ) -> list[str]:
        """An answer for each text, each asked with this system message. Raises CallFailed, Stopped."""
        conversations: list[list[Message]] = [
            [{"role": "system", "content": system_prompt}, {"role": "user", "content": text}]
            for text in user_inputs
        ]
        return self._texts(conversations, json_schema)

    def generate_from_conversations(self, conversations: Sequence[Sequence[Mapping[str, str]]]) -> list[str]:
        """An answer for each conversation. Raises CallFailed, Stopped."""
        return self._texts([[cast(Message, dict(turn)) for turn in turns] for turns in conversations], None)

    def generate_embedding_from_input(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text. Raises CallFailed, Stopped."""
        calls = [Call(({"role": "user", "content": text},), kind="embedding") for text in texts]
        return [list(answer.vector or ()) for answer in self._answers(calls)]

    def start_serving(self) -> None:
        """Nothing: the pipeline's serving is there."""

    def cleanup(self) -> None:
        """Nothing: the pipeline closes its serving."""

    def end(self) -> None:
        """The row is over, or given up: what its thread still asks for is refused."""
        self._is_over = True
        if self._pending is not None:
            self._pending.cancel()

    def _texts(
        self, conversations: Sequence[Sequence[Message]], schema: Mapping[str, object] | None
    ) -> list[str]:
        calls = [
            Call(tuple(turns), self._parameters, schema=schema, sample=self._sample(turns, schema))
            for turns in conversations
        ]
        return [answer.text for answer in self._answers(calls)]

    def _sample(self, turns: Sequence[Message], schema: Mapping[str, object] | None) -> int:
        """How often the row has asked the same before."""
        same = (json_text(list(turns)), json_text(schema))
        self._asked[same] += 1
        return self._asked[same] - 1

    def _answers(self, calls: Sequence[Call]) -> list[Answer]:
        if self._is_over:
            raise Stopped("the row was given up")
        self._pending = asyncio.run_coroutine_threadsafe(self._all(calls), self._loop)
        try:
            return self._pending.result()
        except BaseException as error:
            self.error = self.error or error
            raise

    async def _all(self, calls: Sequence[Call]) -> list[Answer]:
        return list(await asyncio.gather(*(self._ask(call, _usable) for call in calls)))


class AnyServing:
    """What an instance is made with: the serving of whichever row it works on."""

    def __init__(self) -> None:
        self.row: RowServing | None = None

    def __getattr__(self, name: str) -> Any:
        row = self.__dict__.get("row")
        if row is None:
            raise AttributeError(f"the serving has no {name!r} before there is a row")
        return getattr(row, name)


def _usable(answer: Answer) -> Answer:
    if not answer.texts and not answer.vector:
        raise CallFailed("empty", "neither a text nor a vector came back")
    return answer
