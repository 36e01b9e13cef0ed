"""A command on a real pseudo-terminal of a given size, and what a person sees on it."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pyte

from dataflow_assets_tests.crash.command import LIMIT_S, environment

_HISTORY_LINES = 2000


class Terminal:
    """`dataflow-assets ARGUMENTS` in `folder`, begun on a terminal of its own."""

    def __init__(
        self, folder: Path, *arguments: str, columns: int = 120, lines: int = 40, env: Mapping[str, str] = {}
    ) -> None:
        self.columns, self.lines = columns, lines
        own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dataflow_assets", *arguments],
            cwd=folder,
            env=environment({"TERM": "xterm-256color", "COLUMNS": "", **env}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._own = own
        self._chunks: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Until nobody holds the other end."""
        while True:
            try:
                chunk = os.read(self._own, 1 << 16)
            except OSError:
                return
            if not chunk:
                return
            self._chunks.append(chunk)

    @property
    def written(self) -> bytes:
        """All that it wrote so far."""
        return b"".join(self._chunks)

    def screen(self) -> list[str]:
        """The lines that a person can see, those that were scrolled away too; without trailing blanks."""
        screen = pyte.HistoryScreen(self.columns, self.lines, history=_HISTORY_LINES)
        pyte.ByteStream(screen).feed(self.written)
        before = ["".join(line[column].data for column in range(self.columns)) for line in screen.history.top]
        return [line.rstrip() for line in [*before, *screen.display] if line.strip()]

    def cursor_is_hidden(self) -> bool:
        """Whether the terminal is left without a cursor."""
        screen = pyte.Screen(self.columns, self.lines)
        pyte.ByteStream(screen).feed(self.written)
        return screen.cursor.hidden

    def wait_to_see(self, text: str) -> list[str]:
        """Waits until the text is on the screen."""
        end = time.monotonic() + LIMIT_S
        while not any(text in line for line in self.screen()):
            assert self.process.poll() is None and time.monotonic() < end, self.screen()
            time.sleep(0.05)
        return self.screen()

    def press_ctrl_c(self) -> None:
        """What the terminal does to the process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finish(self) -> int:
        """Waits for its end, and for its last words; its exit code."""
        code = self.process.wait(LIMIT_S)
        self._reader.join(10)
        os.close(self._own)
        return code
