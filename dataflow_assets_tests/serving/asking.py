"""One call to a server, as a test writes it."""

import asyncio
from collections.abc import Mapping

import pytest

from dataflow_assets.serving.calls import Answer, Call, CallFailed, Kind
from dataflow_assets.serving.openai import OpenAIServing
from dataflow_assets.serving.spec import OpenAISpec
from dataflow_assets_tests.fault_server import FaultServer


def call_of(content: str = "hello", kind: Kind = "chat", n: int = 1, **parameters: object) -> Call:
    """A call with one message."""
    return Call(({"role": "user", "content": content},), parameters, kind, n=n)


def send(server: FaultServer | str, call: Call | None = None, **spec: object) -> Answer:
    """What one attempt brings."""
    return asyncio.run(_sent([call or call_of()], server, spec))[0]


def send_all(server: FaultServer | str, calls: list[Call], **spec: object) -> list[Answer]:
    """What one attempt each brings, one after the other over one pool."""
    return asyncio.run(_sent(calls, server, spec))


def failure(server: FaultServer | str, call: Call | None = None, **spec: object) -> CallFailed:
    """How one attempt fails."""
    with pytest.raises(CallFailed) as caught:
        send(server, call, **spec)
    return caught.value


async def _sent(calls: list[Call], server: FaultServer | str, spec: Mapping[str, object]) -> list[Answer]:
    url = server if isinstance(server, str) else server.url
    serving = OpenAIServing(OpenAISpec(**{"model": "m", "base_url": url, **spec}))  # pyright: ignore
    try:
        return [await serving.send(call) for call in calls]
    finally:
        await serving.close()
