"""Answers for ledgers, and short ways to put and get them."""

import asyncio
from collections.abc import Iterable

from dataflow_assets.serving.calls import Answer, Call
from dataflow_assets.serving.ledger import Ledger, Where

WHERE = Where("synthesis@1", "write")
ANSWER = Answer(("yes",), tokens_in=10, tokens_out=2, model="m", finish_reasons=("stop",), cost=0.5)
ASKED = Call(({"role": "user", "content": "Is the secret of tea 茶 in the leaf?"},))


def put(ledger: Ledger, *keys: str, answer: Answer = ANSWER, where: Where = WHERE) -> None:
    """Puts the answer under all keys at the same time."""

    async def puts() -> None:
        await asyncio.gather(*(ledger.put(key, where, answer, ASKED) for key in keys))

    asyncio.run(puts())


def get(ledger: Ledger, *keys: str) -> list[Answer | None]:
    """The answers under the keys, looked up at the same time."""

    async def gets() -> list[Answer | None]:
        return await asyncio.gather(*map(ledger.get, keys))

    return asyncio.run(gets())


def held(place: str, keys: Iterable[str]) -> set[str]:
    """Which of the keys a ledger holds that is opened anew."""
    keys = list(keys)
    with Ledger(place, create=False) as ledger:
        return {key for key, answer in zip(keys, get(ledger, *keys), strict=True) if answer is not None}
