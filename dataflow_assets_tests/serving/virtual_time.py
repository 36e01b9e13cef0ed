"""An event loop whose clock jumps to the next timer, so that a minute of waiting takes no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jumping(selectors.SelectSelector):
    """Never waits; says how long it was to wait instead."""

    waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.waited_s += timeout or 0.0
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0; `late_s` is how much later than wanted each timer rings."""

    def __init__(self, late_s: float = 0.0) -> None:
        self._jumping = _Jumping()
        self._late_s = late_s
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.waited_s

    def call_at(self, when: float, *rest: Any, **named: Any) -> asyncio.TimerHandle:
        return super().call_at(when + self._late_s, *rest, **named)


def run_at_once(main: Coroutine[Any, Any, Result], late_s: float = 0.0) -> Result:
    """What `main` gives in such a loop."""
    loop = VirtualTimeLoop(late_s)
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


def now() -> float:
    """The time of the running loop."""
    return asyncio.get_running_loop().time()
