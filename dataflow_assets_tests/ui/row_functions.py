"""Functions for `map_python` in the pipelines of these tests."""

import os
import time
from pathlib import Path

GATES = "DATAFLOW_UI_TEST_GATES"
HEALED = "healed"
_LIMIT_S = 240


def count(row):
    if row["text"].startswith("bad row"):
        raise ValueError("<b>a bad row</b>")
    return {"words": len(row["text"].split())}


def watched(row):
    """Waits at a row `wait N` until the file of this name is in the folder GATES; fails at `sick` rows."""
    gates, text = Path(os.environ[GATES]), row["text"]
    if text.startswith("wait"):
        (gates / f"{text}.reached").touch()
        deadline = time.monotonic() + _LIMIT_S
        while not (gates / text).exists():
            if time.monotonic() > deadline:
                raise SystemExit(f"nobody opened {text}")
            time.sleep(0.02)
    if text.startswith("sick") and not (gates / HEALED).exists():
        raise ValueError("still sick")
    return {}
