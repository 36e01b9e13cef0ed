"""The serving for any server with the OpenAI API: one call is one HTTP request."""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.openai_answers import read_answer
from dataflow_assets.serving.openai_connection import addresses, exchange, open_session, secrets_of
from dataflow_assets.serving.openai_request import request_of
from dataflow_assets.serving.redaction import Redaction
from dataflow_assets.serving.spec import OpenAISpec

if TYPE_CHECKING:
    from aiohttp import ClientSession

_LIMITS = ("connect_timeout_s", "read_timeout_s", "total_timeout_s")


class OpenAIServing:
    """Asks a server with the OpenAI API: chat, completions and embeddings, streamed or not.

    Connections are pooled, one pool for each event loop. Raises ConfigError for a `base_url` or a key
    that cannot be right. Neither errors nor `repr` show the key.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        self.model = spec.model
        self.supports_n = spec.supports_n
        self._spec = spec
        self._addresses = addresses(spec)
        self._redaction = Redaction(secrets_of(spec))
        self._limits = {name: float(getattr(spec, name)) for name in _LIMITS}
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, ClientSession] = WeakKeyDictionary()

    def __repr__(self) -> str:
        shown = self._addresses["/embeddings"].shown.removesuffix("/embeddings")
        return f"OpenAIServing({self.model!r}, {shown!r})"

    async def send(self, call: Call) -> Answer:
        """One attempt. Raises CallFailed, with status, asked wait and raw answer."""
        try:
            request = request_of(self._spec, call)
            address = self._addresses[request.route]
            reply = await exchange(self._session(), address, request.body, self._limits)
            return read_answer(reply, call, self.model)
        except CallFailed as failed:
            self._redaction.failure(failed)
            raise

    def _session(self) -> "ClientSession":
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            session = self._sessions[loop] = open_session(self._spec)
        return session

    async def close(self) -> None:
        """Closes the connections of this event loop; those of loops that have ended went with them."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()
