"""How this process asks for memory: big blocks are used again instead of being given back each time."""

import ctypes
import os
import sys

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_KEPT_BYTES = 256 * 2**20
_BLOCK_BYTES = 64 * 2**20


def settle_memory(batches_in_hand: int) -> None:
    """For a process of our own, before its first batch; a process that is somebody else's is left alone.

    Arrow allocates from the system, for pools that keep what they once had add up. The system's
    allocator keeps blocks of a batch's size and has few arenas. Polars has as many threads as
    batches are in hand.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    os.environ.setdefault("POLARS_MAX_THREADS", str(batches_in_hand))  # read when it is first used
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_ARENA_MAX, max(2, batches_in_hand))
