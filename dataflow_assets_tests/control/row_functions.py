"""Functions for `map_python` that take as long as a test wants."""

import os
import time

from dataflow_assets_tests.crash.row_functions import wait_for_the_gate


def slowly(row: dict) -> dict:
    """Takes ROW_S seconds a row, 0 where the variable is not set; waits for the gate in row 35."""
    wait_for_the_gate(row)
    time.sleep(float(os.environ.get("ROW_S", "0")))
    return {"chars": len(row["text"])}
