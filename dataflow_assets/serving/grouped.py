"""Requests that are made at the same time, done together by one thread."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")
_Waiter = asyncio.Future


class _End:
    """Asks the thread to end."""


class _Asked(NamedTuple):
    """An item, and who waits for its result, in which loop; nobody where it was only told."""

    item: object
    waiter: "_Waiter[object] | None"
    loop: asyncio.AbstractEventLoop | None


class Grouped(Generic[Item, Result]):
    """One thread that does everything that has gathered since it last looked, at most `most` items at once.

    `do` gives one result for each item, in order; what it raises is raised for every item of the
    group. Any number of event loops and threads may ask.
    """

    def __init__(self, name: str, do: Callable[[list[Item]], Sequence[Result]], most: int) -> None:
        self._name = name
        self._do = do
        self._most = most
        self._queue: SimpleQueue[_Asked | _End] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def ask(self, item: Item) -> Result:
        """The result for this item. A caller that is cancelled does not take its item back."""
        loop = asyncio.get_running_loop()
        waiter: _Waiter[object] = loop.create_future()
        self._add(_Asked(item, waiter, loop))
        return cast(Result, await waiter)

    def tell(self, item: Item) -> None:
        """Has this item done some time, and does not ask whether it could be."""
        self._add(_Asked(item, None, None))

    def close(self) -> None:
        """Ends the thread after everything that was asked until now."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(_End())
            thread.join()

    def _add(self, asked: _Asked) -> None:
        if self._thread is None:
            self._begin()
        self._queue.put(asked)

    def _begin(self) -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the {self._name} is closed and was asked all the same")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        ended = False
        while not ended:
            group, ended = self._gathered()
            if group:
                self._done(group)

    def _gathered(self) -> tuple[list[_Asked], bool]:
        """Waits for one item, then takes those that are there already; and whether the end was asked for."""
        group: list[_Asked] = []
        try:
            while len(group) < self._most:
                asked = self._queue.get(block=not group)
                if isinstance(asked, _End):
                    return group, True
                group.append(asked)
        except Empty:
            pass
        return group, False

    def _done(self, group: list[_Asked]) -> None:
        items = cast(list[Item], [asked.item for asked in group])
        try:
            results: Sequence[object] = self._do(items)
            failure = None
        except Exception as error:  # noqa: BLE001  it is raised where the result is awaited
            results, failure = [None] * len(group), error
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiter[object], object]]] = {}
        for asked, result in zip(group, results, strict=True):
            if asked.loop is not None and asked.waiter is not None:
                by_loop.setdefault(asked.loop, []).append((asked.waiter, result))
        for loop, waiters in by_loop.items():
            _hand_over(loop, waiters, failure)


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    waiters: list[tuple["_Waiter[object]", object]],
    failure: Exception | None,
) -> None:
    try:
        loop.call_soon_threadsafe(_resolve, waiters, failure)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _resolve(waiters: list[tuple["_Waiter[object]", object]], failure: Exception | None) -> None:
    for waiter, result in waiters:
        if waiter.done():
            continue
        if failure is None:
            waiter.set_result(result)
        else:
            waiter.set_exception(failure)
