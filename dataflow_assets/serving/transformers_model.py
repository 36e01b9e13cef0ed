"""A serving that runs a `transformers` model in this process, on batches of the calls that wait."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from dataflow_assets.optional_packages import require
from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.finish import usable
from dataflow_assets.serving.spec import TransformersSpec

if TYPE_CHECKING:
    from dataflow_assets.serving.transformers_generation import Model

_PACKAGES = ("torch", "transformers")


class _Waiting(NamedTuple):
    """A call and whoever waits for its answer."""

    call: Call
    answer: "asyncio.Future[Answer]"


class TransformersServing:
    """Generates in a thread, so that the event loop goes on; the model is loaded at the first call.

    Calls that come while a batch runs make up the next one, of at most `concurrency` answers, each
    with its own length, temperature and seed. An answer depends on its own call alone, as far as
    sums of floats do not depend on the other rows. Raises ConfigError without torch or transformers.
    """

    supports_n = True

    def __init__(self, spec: TransformersSpec) -> None:
        require(dict.fromkeys(_PACKAGES, "models"), "a serving of type 'transformers'")
        self.model = spec.model
        self._spec = spec
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        self._loaded: Model | None = None
        self._waiting: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def send(self, call: Call) -> Answer:
        """The answer of the model. Raises CallFailed, `not_found` where there is no such model."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append(_Waiting(call, answer))
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        return usable(await answer)

    async def close(self) -> None:
        """Ends after the batch in hand; frees thread and model. Calls that still wait are cancelled."""
        while self._waiting:
            self._waiting.popleft().answer.cancel()
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._loaded is not None:
            self._loaded.free()
            self._loaded = None

    async def _work(self) -> None:
        """Runs batches until no call waits."""
        while self._waiting:
            await asyncio.sleep(0)  # calls that are sent in the same turn of the loop go together
            batch = self._next_batch()
            if batch:
                await self._run(batch)

    def _next_batch(self) -> list[_Waiting]:
        """The first calls that want the same as the first one (embeddings or texts) and fit together."""
        batch: list[_Waiting] = []
        others: list[_Waiting] = []
        room = self._spec.concurrency
        while self._waiting and room > 0:
            waiting = self._waiting.popleft()
            if waiting.answer.done():
                continue
            fits = not batch or (_is_embedding(waiting) == _is_embedding(batch[0]) and waiting.call.n <= room)
            (batch if fits else others).append(waiting)
            room -= waiting.call.n if fits else 0
        self._waiting.extendleft(reversed(others))
        return batch

    async def _run(self, batch: Sequence[_Waiting]) -> None:
        calls = [waiting.call for waiting in batch]
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._answers, calls)
        except Exception as error:  # noqa: BLE001  every call of the batch is told
            answers = [_failure(error, self.model) for _ in batch]
        for waiting, answer in zip(batch, answers, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(answer, CallFailed):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)

    def _answers(self, calls: Sequence[Call]) -> Sequence[Answer | CallFailed]:
        """The answers to calls of one kind; in the thread."""
        if self._loaded is None:
            from dataflow_assets.serving.transformers_generation import Model

            self._loaded = Model(self._spec)
        work: Callable[[Sequence[Call]], Sequence[Answer | CallFailed]]
        work = self._loaded.embedded if calls[0].kind == "embedding" else self._loaded.generated
        return work(calls)


def _is_embedding(waiting: _Waiting) -> bool:
    return waiting.call.kind == "embedding"


def _failure(error: Exception, model: str) -> CallFailed:
    """What each call of a batch fails with: no model, or the model itself broke (memory, device)."""
    if isinstance(error, CallFailed):
        return CallFailed(error.error_class, str(error))
    return CallFailed("server_error", f"the model {model!r} failed: {type(error).__name__}: {error}")
