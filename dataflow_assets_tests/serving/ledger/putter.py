"""A process that puts answers, 64 at a time, and prints each key once its put has returned.

`python -m …putter PLACE PREFIX COUNT`. It ends with the error's name where a put fails.
"""

import asyncio
import os
import sys
from collections.abc import Iterator

from dataflow_assets.errors import LedgerError
from dataflow_assets.serving.ledger import Ledger
from dataflow_assets_tests.serving.ledger.answers import ANSWER, WHERE

IN_FLIGHT = 64


async def _worker(ledger: Ledger, keys: Iterator[str]) -> None:
    for key in keys:
        await ledger.put(key, WHERE, ANSWER, None)
        os.write(1, f"{key}\n".encode())


async def _put_all(ledger: Ledger, prefix: str, count: int) -> None:
    keys = (f"{prefix}{number}" for number in range(count))
    await asyncio.gather(*(_worker(ledger, keys) for _ in range(IN_FLIGHT)))


if __name__ == "__main__":
    try:
        with Ledger(sys.argv[1]) as ledger:
            asyncio.run(_put_all(ledger, sys.argv[2], int(sys.argv[3])))
    except LedgerError as error:
        sys.exit(f"LedgerError: {error}")
