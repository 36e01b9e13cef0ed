"""Several calls of one row at the same time."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar, cast

from dataflow_assets.errors import RowError

Result = TypeVar("Result")


async def together(asked: Sequence[Awaitable[Result]]) -> list[Result]:
    """The results of calls that are made at the same time, in their order.

    All are waited for, so that none that was paid for is lost; then the first failure is raised,
    one that stops the run before one that fails the row.
    """
    results = await asyncio.gather(*asked, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise min(failures, key=lambda error: isinstance(error, RowError))
    return cast(list[Result], results)
