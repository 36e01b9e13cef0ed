"""The code blocks of a Markdown file, run in the order and the folder in which a reader would run them.

A block with `title="NAME"` is a file; all of them are there before the first command. Each line of
an `sh` block is a command, a `python` block without a title is a program.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

INSTALL = "python3 -m venv"
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIMEOUT_S = 300


class Block(NamedTuple):
    language: str
    title: str | None
    text: str

    @property
    def commands(self) -> list[str]:
        return self.text.splitlines()


def blocks_of(document: Path) -> list[Block]:
    return [Block(found[1], found[2], found[3]) for found in _BLOCK.finditer(document.read_text("utf-8"))]


def run_examples(document: Path, folder: Path) -> None:
    """Runs every example but the two that install; AssertionError has the output of the first to fail."""
    blocks = blocks_of(document)
    for block in blocks:
        if block.title:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text, "utf-8")
    for block in blocks:
        for command in _commands(block):
            if command[-1].startswith("dagster dev"):
                assert ["text_clean", "unique"] in list(served_assets(command[-1], folder))
            else:
                _run(command, folder)


def _commands(block: Block) -> Iterator[list[str]]:
    if block.language == "sh":
        yield from (["bash", "-c", line] for line in block.commands if not line.startswith(INSTALL))
    elif block.language == "python" and not block.title:
        yield [sys.executable, "-c", block.text]


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=_TIMEOUT_S
    )
    assert done.returncode == 0, f"{command[-1]}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"


def environment() -> dict[str, str]:
    """What a reader has who activated the virtual environment: no settings of whoever runs the tests."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "DATAFLOW_"))
    }
    return {**ours, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def served_assets(command: str, folder: Path) -> Iterator[list[str]]:
    """The asset keys that the web server of `dagster dev` shows."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        ["bash", "-c", f"exec {command} --host 127.0.0.1 --port {port}"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        answer = _asked(f"http://127.0.0.1:{port}/graphql", "{assetNodes {assetKey {path}}}", server)
        yield from (node["assetKey"]["path"] for node in answer["data"]["assetNodes"])
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)


def _asked(url: str, query: str, server: "subprocess.Popen[bytes]") -> dict:
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            assert server.poll() is None, f"dagster dev ended with {server.returncode}"
            assert time.monotonic() < deadline, f"dagster dev did not answer within {_TIMEOUT_S} s"
            time.sleep(0.5)
