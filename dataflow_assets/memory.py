"""How this process asks for memory."""

import ctypes
import os
import sys

import pyarrow as pa

_M_ARENA_MAX = -8


def settle_memory(batches_in_hand: int) -> None:
    """For a process of our own, before its first batch; a process that is somebody else's is left alone.

    Arrow allocates from the system: several pools that keep what they once had add up. The system's
    allocator gets few arenas, and polars as many threads as batches are in hand.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    os.environ.setdefault("POLARS_MAX_THREADS", str(batches_in_hand))  # read when it is first used
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, max(2, batches_in_hand))
