"""Outcomes as bytes, for engines whose workers are other processes."""

from dataflow_assets.batch import packed, unpacked
from dataflow_assets.operators.operator import Outcome

Wire = tuple[bytes | None, ...]


def to_wire(outcome: Outcome) -> Wire:
    """The outcome as Arrow IPC streams."""
    return tuple(None if table is None else packed(table) for table in outcome)


def from_wire(wire: Wire) -> Outcome:
    """The outcome that was packed."""
    kept, rejected, failed = (None if data is None else unpacked(data) for data in wire)
    assert kept is not None
    return Outcome(kept, rejected, failed)
