"""Functions for `map_python` in the pipelines of these tests."""

import os
import time
from pathlib import Path

GATES = "DATAFLOW_TEST_GATES"
_LIMIT_S = 240


def refuse_bad(row):
    if row["text"] == "bad":
        raise ValueError("a bad row")
    return {}


def wait_at_gate(row):
    """Waits until the file that the row names lies in the folder of GATES; tells that it came to it."""
    gate = Path(os.environ[GATES]) / row["text"]
    gate.with_suffix(".reached").touch()
    deadline = time.monotonic() + _LIMIT_S
    while not gate.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"nobody opened {gate}")
        time.sleep(0.02)
    return {}
