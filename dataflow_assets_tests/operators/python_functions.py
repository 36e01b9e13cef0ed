"""Functions of a user, as `map_python` calls them."""

import sys

NOT_A_FUNCTION = 7


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text of mine")


def shout(row: dict) -> dict:
    return {"text": row["text"].upper(), "chars": len(row["text"])}


def drop_odd(row: dict) -> dict | None:
    return None if row["n"] % 2 else {}


def fail_on_b(row: dict) -> dict:
    if row["text"] == "b":
        raise ValueError("I cannot do b")
    return {}


def exit_on_b(row: dict) -> dict:
    if row["text"] == "b":
        sys.exit(0)
    return {}


def mute_on_b(row: dict) -> dict:
    if row["text"] == "b":
        raise Mute
    return {}


def give(row: dict) -> dict:
    """Returns what the row holds in `give`, as its new values."""
    return row["give"]


def spoil_the_row(row: dict) -> dict:
    row["text"] = "spoilt"
    row["give"].append(1)
    return {}


class Scorer:
    def __call__(self, row: dict) -> dict:
        return {"chars": len(row["text"])}


scorer = Scorer()
