"""Randomness that belongs to the row: a hash of a seed and the row's id."""

import numpy as np
import pyarrow as pa
import xxhash


def row_hashes(row_ids: pa.ChunkedArray, seed: int) -> np.ndarray:
    """A number below 2^64 for each row, evenly spread, the same wherever the row is."""
    mixed = xxhash.xxh3_128_digest(str(seed).encode())
    parts = [np.empty(0, np.uint64)]
    for chunk in row_ids.chunks:
        hashes = (xxhash.xxh3_64_intdigest(mixed + row_id.encode()) for row_id in chunk.to_pylist())
        parts.append(np.fromiter(hashes, np.uint64, len(chunk)))
    return np.concatenate(parts)
