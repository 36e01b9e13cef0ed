"""Tools that tests run as programs, each in a virtual environment: their packages quarrel with ours.

An environment is made once and kept in the temporary folder of the machine.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

_LIMIT_S = 600


def tool(program: str, *requirements: str) -> Path:
    """The program of these packages; skips loudly where they cannot be had, in CI it fails."""
    name = "_".join(part.replace("==", "-") for part in requirements)
    place = Path(tempfile.gettempdir()) / f"dataflow_assets_tools_{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    made = place / f"{name}-py{sys.version_info.major}.{sys.version_info.minor}"
    with open(place / f"{made.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "complete").exists():
            _make(made, requirements)
    return made / "bin" / program


def _make(place: Path, requirements: tuple[str, ...]) -> None:
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(place)],
        [str(place / "bin" / "python"), "-m", "pip", "install", "-q", *requirements],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode != 0:
            reason = f"{' '.join(requirements)} cannot be installed: {done.stderr[-1000:]}"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    (place / "complete").touch()
