"""HTTP servers of the tests, each in a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import TypeVar

Server = TypeVar("Server", bound=HTTPServer)


@contextmanager
def listening(server: Server) -> Iterator[Server]:
    """The server, which answers for as long as the test is in it."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def url_of(server: HTTPServer) -> str:
    """Where it listens."""
    return f"http://127.0.0.1:{server.server_port}"
