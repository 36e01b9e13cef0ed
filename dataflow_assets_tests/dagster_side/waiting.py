"""Waits for a condition instead of a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], limit_s: float = 90, every_s: float = 0.1) -> T:
    """What the condition gives once it is true; it may raise FileNotFoundError meanwhile."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if found := condition():
                return found
        except (FileNotFoundError, ConnectionError):
            pass
        time.sleep(every_s)
    raise TimeoutError(f"not within {limit_s} s")
