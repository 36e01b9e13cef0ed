"""Functions that make rows for tests; what they did is noted."""

import datetime
import random
import sys
from collections.abc import Iterator

called: list[object] = []


def sums(n: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Seeded sums; a nested value, and a text of digits."""
    called.append((n, seed))
    dice = random.Random(seed)
    for number in range(n):
        yield {
            "text": f"{dice.randrange(100)} 加 {number}",
            "code": f"{number:03d}",
            "more": {"a": [number, None]},
        }


def odd() -> list[object]:
    """Rows of which some are none."""
    return [
        {"text": "good", "big": 2**70},
        "no dict",
        {"text": datetime.date(2024, 1, 5)},
        {3: "no name"},
        {"text": float("nan"), "inner": [float("nan")]},
        {"text": {"a": {1, 2}}},
        {"text": "also good"},
    ]


def broken(n: int) -> Iterator[dict[str, object]]:
    """Raises after `n` rows."""
    yield from sums(n)
    raise RuntimeError("the well is dry")


def exits(n: int) -> Iterator[dict[str, object]]:
    """Ends the process after `n` rows, as it thinks."""
    yield from sums(n)
    sys.exit(0)


def nothing() -> None:
    """No rows at all."""


A_NUMBER = 3
