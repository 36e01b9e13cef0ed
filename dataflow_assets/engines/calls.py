"""Runs operators that ask models: many rows at once in one event loop, over all batches in hand."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from dataflow_assets.batch import rows_of
from dataflow_assets.control import StopFlag
from dataflow_assets.errors import DataflowError, Raised, RowError, Stopped
from dataflow_assets.operators.llm.operator import Checked, Done, LLMOperator
from dataflow_assets.operators.llm.outcome import RowDone, outcome_of
from dataflow_assets.operators.operator import Outcome
from dataflow_assets.serving.calls import Answer, Call
from dataflow_assets.serving.usage import Usage

if TYPE_CHECKING:
    from dataflow_assets.serving.client import Client

LOOK_EVERY_S = 0.1
_SWITCH_S = 0.0005
Result = TypeVar("Result")


class Asked(NamedTuple):
    """The outcome of a batch, and what its calls took."""

    outcome: Outcome
    usage: Usage


class CallEngine:
    """Rows of all batches in hand ask through one client, so the tail of a batch does not idle the server.

    `client` is made in the loop when the first batch comes. `rows_in_hand` rows are worked on at a
    time; how many of them have a call in flight is the client's matter. When a stop comes, no
    further call is sent, those in flight are finished and kept, and `run` raises Stopped. `tell` is told
    of each row in the loop's thread. Thread-safe.
    """

    def __init__(
        self,
        client: "Callable[[], Awaitable[Client]]",
        rows_in_hand: int,
        tell: Callable[[RowDone], None] = lambda row: None,
    ) -> None:
        self._make_client = client
        self._rows_in_hand = rows_in_hand
        self._tell = tell
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop = StopFlag()
        self._ended: DataflowError | None = None
        self._is_closed = False
        self._tasks: set[asyncio.Task[RowDone]] = set()

    def begin(self, stop: StopFlag) -> None:
        """Looks at this flag from now on."""
        self._stop = stop

    def run(self, operator: LLMOperator, table: pa.Table) -> Asked:
        """The outcome of all rows, in row order. Raises Stopped, Paused, LedgerError."""
        results = self._in_loop(self._batch(operator, rows_of(table))).result()
        self._client.sync()
        usage = Usage()
        for result in results:
            usage.add(result.usage)
        return Asked(outcome_of(operator, table, results), usage)

    def close(self) -> None:
        """Waits for the calls in flight and ends the loop."""
        with self._lock:
            loop, thread, self._loop, self._is_closed = self._loop, self._thread, None, True
        if loop is None or thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._closed(), loop).result()
        finally:
            _end_loop(loop, thread)

    def _in_loop(self, work: Coroutine[object, object, Result]) -> "Future[Result]":
        """The work in the loop, which is made when it is first needed. Raises what the client raises."""
        try:
            with self._lock:
                loop = self._open_loop()
        except BaseException:  # raised again: a coroutine that nobody awaits would warn
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, loop)

    def _open_loop(self) -> asyncio.AbstractEventLoop:
        if self._is_closed:
            raise Stopped("the step was closed")
        if self._loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_run_loop, args=(loop,), name="calls", daemon=True)
            thread.start()
            try:
                asyncio.run_coroutine_threadsafe(self._opened(), loop).result()
            except BaseException:  # raised again: the thread would live on
                _end_loop(loop, thread)
                raise
            self._loop, self._thread = loop, thread
        return self._loop

    async def _opened(self) -> None:
        self._client = await self._make_client()
        self._rows = asyncio.Semaphore(self._rows_in_hand)
        self._turn = asyncio.Lock()
        self._watch = asyncio.ensure_future(self._watched())

    async def _closed(self) -> None:
        self._watch.cancel()
        self._end(Stopped("the step was closed"))
        await self._client.close()

    async def _watched(self) -> None:
        """Ends everything once the flag is up."""
        while not self._stop:
            await asyncio.sleep(LOOK_EVERY_S)
        try:
            self._stop.raise_if_up()
        except Stopped as stopped:
            self._end(stopped)

    def _end(self, error: DataflowError) -> None:
        """No row begins or goes on; calls in flight are not touched."""
        self._ended = self._ended or error
        for task in self._tasks:
            task.cancel()

    async def _batch(self, operator: LLMOperator, rows: Sequence[Mapping[str, object]]) -> list[RowDone]:
        """What became of each row. A batch begins no row before all rows of those before it have begun."""
        tasks: list[asyncio.Task[RowDone]] = []
        async with self._turn:
            for row in rows:
                await self._rows.acquire()
                if self._ended is not None:
                    self._rows.release()
                    break
                tasks.append(self._begun(operator, row))
        done = await asyncio.gather(*tasks, return_exceptions=True)
        if self._ended is not None:
            await self._client.drain()
            raise self._ended
        return [_as_done(one) for one in done]

    def _begun(self, operator: LLMOperator, row: Mapping[str, object]) -> "asyncio.Task[RowDone]":
        task = asyncio.ensure_future(self._row(operator, row))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: "asyncio.Task[RowDone]") -> None:
        self._tasks.discard(task)
        self._rows.release()

    async def _row(self, operator: LLMOperator, row: Mapping[str, object]) -> RowDone:
        """What became of the row; its error is its own, a stop and a broken ledger are everybody's."""
        usage = Usage()
        try:
            done: Done | Raised = await operator.do(row, partial(self._ask, usage))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
            done = error
        if self._ended is not None:
            raise self._ended
        became = RowDone(done, usage)
        self._tell(became)
        return became

    async def _ask(self, usage: Usage, call: Call, check: Callable[[Answer], Checked]) -> Checked:
        try:
            return await self._client.ask(call, check, usage)
        except DataflowError as error:
            if not isinstance(error, RowError):
                self._end(error)  # whatever the operator makes of it
            raise


def _as_done(result: RowDone | BaseException) -> RowDone:
    if isinstance(result, BaseException):
        raise result
    return result


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    with _short_turns():
        loop.run_forever()


_turns = threading.Lock()
_loops = 0
_usual_s = 0.0


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Threads take shorter turns as long as a loop runs; with the last one the usual turns are back.

    A loop gives up the GIL at each send and receive; a thread that computes would keep it for 5 ms
    each time.
    """
    global _loops, _usual_s
    with _turns:
        if not _loops:
            _usual_s = sys.getswitchinterval()
            sys.setswitchinterval(min(_SWITCH_S, _usual_s))
        _loops += 1
    try:
        yield
    finally:
        with _turns:
            _loops -= 1
            if not _loops:
                sys.setswitchinterval(_usual_s)


def _end_loop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
