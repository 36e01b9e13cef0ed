"""The server's process: two ports, one of which can refuse; ends when its standard input does."""

import argparse
import asyncio
import json
import socket
import sys
from dataclasses import asdict
from pathlib import Path

import orjson

from dataflow_assets_tests.fault_server.answers import KINDS, Request
from dataflow_assets_tests.fault_server.connection import Connection, asked_of
from dataflow_assets_tests.fault_server.records import Asked, Stats
from dataflow_assets_tests.fault_server.rules import Behaviour, Rules

HOST = "127.0.0.1"
_BACKLOG = 1024


class Server:
    """Rules, records, and the port for the clients."""

    def __init__(self, given: list[dict]) -> None:
        self.connections: set[Connection] = set()
        self._given = given
        self._clients: asyncio.Task[asyncio.Server] | None = None
        self.port = 0
        self._forget()

    def _forget(self) -> None:
        self._rules, self._stats = Rules(), Stats()
        for rule in self._given:
            self._rules.add(rule)

    def opened(self, path: str, head: bytes, body: bytes) -> tuple[Asked, Request, Behaviour]:
        """Writes down a request and chooses its behaviour."""
        stats = self._stats
        asked, parsed, content = asked_of(len(stats.requests) + 1, path, body)
        stats.requests.append(asked)
        stats.in_flight += 1
        stats.in_flight_max = max(stats.in_flight_max, stats.in_flight)
        self._last = head, parsed
        behaviour = self._rules.behaviour(asked, content, stats.in_flight)
        return asked, Request(path, head, parsed, content), behaviour

    def closed(self, asked: Asked) -> None:
        """The request is no longer in flight; one from before a reset is not counted."""
        stats = self._stats
        if 0 < asked.ordinal <= len(stats.requests) and stats.requests[asked.ordinal - 1] is asked:
            stats.in_flight -= 1

    def control(self, path: str, body: bytes) -> object:
        """`/control` adds a rule, `/reset` forgets all, `/stats`, `/refuse`, `/listen`, `/v1/models`."""
        name = path.rstrip("/").rpartition("/")[2]
        if name == "models":
            return {"object": "list", "data": [{"id": "m", "object": "model"}]}
        return {
            "control": lambda: self._rules.add(_checked(orjson.loads(body))),
            "reset": self.reset,
            "stats": self._told,
            "refuse": lambda: self.refuse(None),
            "listen": self.listen,
        }[name]()

    def _told(self) -> object:
        head, body = getattr(self, "_last", (b"", {}))
        last = {"last_head": head.decode("latin-1"), "last_body": body}
        told = {"requests": [asdict(asked) for asked in self._stats.requests], **last}
        for name in ("in_flight", "in_flight_max"):
            told[name] = getattr(self._stats, name)
        return {**told, "connections": len(self.connections)}

    def reset(self) -> None:
        """Forgets rules and records, drops the clients' connections, listens."""
        self._forget()
        self._drop()
        self.listen()

    def _drop(self) -> None:
        for connection in [*self.connections]:
            if connection.transport.get_extra_info("sockname")[1] == self.port:
                connection.reset()

    def refuse(self, for_s: float | None) -> None:
        """Stops listening for a while, or until `listen`, and resets the clients' connections."""
        if self._clients is None:
            return
        if self._clients.done():
            self._clients.result().close()
        else:
            self._clients.add_done_callback(lambda opened: opened.result().close())
        self._clients = None
        self._drop()
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, self.listen)

    def listen(self) -> None:
        """Opens the clients' port, the same one again after a refusal; connections wait from now on."""
        if self._clients is not None:
            return
        opened = socket.create_server((HOST, self.port), backlog=_BACKLOG)
        self.port = opened.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._clients = loop.create_task(loop.create_server(lambda: Connection(self), sock=opened))


def _checked(rule: dict) -> dict:
    """The rule, if all its behaviours are known. Raises ValueError."""
    given = rule.get("default", rule.get("then", "ok"))
    for one in given if isinstance(given, list) else [given]:
        kind = one if isinstance(one, str) else one["kind"]
        if kind not in KINDS:
            raise ValueError(f"no behaviour {kind!r}; there are {', '.join(KINDS)}")
    return rule


async def _serve(port: int, rules: list[dict]) -> None:
    server = Server(rules)
    server.port = port
    server.listen()
    loop = asyncio.get_running_loop()
    control = await loop.create_server(lambda: Connection(server), HOST, 0)
    ports = {"port": server.port, "control_port": control.sockets[0].getsockname()[1]}
    print(json.dumps(ports), flush=True)
    ended = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(ended), sys.stdin)
    await ended.read()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rules", type=Path, help="JSON file with a list of rules")
    given = parser.parse_args()
    rules = [_checked(rule) for rule in json.loads(given.rules.read_text())] if given.rules else []
    asyncio.run(_serve(given.port, rules))


if __name__ == "__main__":
    _main()
