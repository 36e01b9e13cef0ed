"""Functions of a user, as `map_python` calls them; some kill their process when a test asks for it."""

import os
import signal
import time
from pathlib import Path


def sized(row: dict) -> dict:
    """Adds the length of the text; row 13 raises, row 35 may kill somebody, once."""
    if row["n"] == 13:
        raise ValueError("I cannot do 13")
    if row["n"] == 35:
        kill_once()
    return {"chars": len(row["text"])}


def kill_once() -> None:
    """Kills this process or its parent, as KILL_FROM_ROW says, the first time that it is called."""
    victim = os.environ.get("KILL_FROM_ROW")
    if victim is None:
        return
    try:
        Path(os.environ["KILLED_MARKER"]).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getppid() if victim == "parent" else os.getpid(), signal.SIGKILL)


def kill_on_seven(row: dict) -> dict:
    """Row 7 ends its process without a word."""
    if row["n"] == 7:
        os._exit(1)
    return {}


def raise_on_seven(row: dict) -> dict:
    if row["n"] == 7:
        raise KeyError("seven")
    return {}


def wait_for_the_gate(row: dict) -> dict:
    """In row 35: writes its process id, then waits until the test takes the gate away."""
    gate = Path(os.environ.get("GATE", "/nonexistent/gate"))
    if row["n"] == 35 and gate.exists():
        gate.with_name(f"worker_{os.getpid()}").touch()
        while gate.exists():
            time.sleep(0.02)
    return {}


def plus_one(row: dict) -> dict:
    return {"a": row["v"] + 1}


def doubled(row: dict) -> dict:
    return {"b": row["a"] * 2}


def difference(row: dict) -> dict:
    return {"c": row["b"] - row["v"]}


def always_one(row: dict) -> dict:
    return {"chars": 1}


def deadly(values: dict[str, object]) -> dict[str, object]:
    """Ends its process at row 25, each time, as a bug in a library does."""
    if values["n"] == 25:
        os.abort()
    return {"chars": len(str(values["text"]))}
