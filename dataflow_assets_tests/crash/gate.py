"""A run that waits in the middle of a row until the test lets it go on."""

import time
from collections.abc import Callable
from pathlib import Path

from dataflow_assets_tests.crash.command import LIMIT_S, Running
from dataflow_assets_tests.crash.project import FUNCTIONS

GATE_STEPS = f"""steps:
  - {{name: lower, type: lowercase, params: {{column: text}}}}
  - {{name: waiting, type: map_python, params: {{function: "{FUNCTIONS}:wait_for_the_gate"}}WORKERS}}
"""


def gated(folder: Path) -> dict[str, str]:
    """Closes the gate of `folder`; the environment for the run that shall wait there."""
    (folder / "gate").touch()
    return {"GATE": str(folder / "gate")}


def wait_until(is_so: Callable[[], bool], process: Running | None = None) -> None:
    """Waits for something that another process does; fails where that process ends before."""
    end = time.monotonic() + LIMIT_S
    while not is_so():
        assert process is None or process.poll() is None, process.texts()
        assert time.monotonic() < end
        time.sleep(0.02)
