"""Tries again what an object store may grant later: with growing waits, and not for ever."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from dataflow_assets.errors import StorageError

ATTEMPTS = 7
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_Result = TypeVar("_Result")


def retried(
    where: str,
    attempt: Callable[[], _Result],
    may_pass: Callable[[Exception], bool],
    reason: Callable[[Exception], str] = str,
) -> _Result:
    """What `attempt` gives, tried up to ATTEMPTS times while its error may pass.

    The waits double, each by chance between half and all of it. Errors of the store that stay are raised
    as StorageError; FileNotFoundError and errors that `reason` does not know (it raises them) as they are.
    """
    wait_s = _FIRST_WAIT_S
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except FileNotFoundError:
            raise
        except Exception as error:
            if not may_pass(error):
                raise StorageError(f"{where} cannot be used: {reason(error)}") from error
            if number == ATTEMPTS:
                raise StorageError(
                    f"{where} cannot be reached: {reason(error)}, {number} times; run the same command again "
                    "when the store answers: what was committed is kept"
                ) from error
        time.sleep(wait_s * random.uniform(0.5, 1.0))
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
    raise AssertionError("unreachable")
