"""MinHash signatures of shingles, cut into bands (Broder 1997; LSH: Leskovec et al., ch. 3)."""

import numpy as np

from dataflow_assets.operators.deduplication.shingles import Shingles

_BASE = np.uint64(0x9E3779B97F4A7C15)


def band_keys(shingles: Shingles, bands: int, rows: int, seed: int) -> np.ndarray:
    """For each text and band one int64: two texts of Jaccard similarity s share one with s ** rows.

    Texts without shingles have 0.
    """
    from rensa import RMinHash  # pyright: ignore[reportAttributeAccessIssue]  made in Rust, has no types

    filled = np.diff(shingles.ends) > 0
    offsets = shingles.ends[np.append(True, filled)].astype(np.uint64)
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(shingles.hashes, offsets, bands * rows, seed)
    signatures = np.array(matrix.to_rows(), np.uint64).reshape(-1, bands, rows)
    keys = np.zeros(signatures.shape[:2], np.uint64)
    for row in range(rows):
        keys = (keys + signatures[:, :, row]) * _BASE
        keys ^= keys >> np.uint64(29)
    found = np.zeros((len(filled), bands), np.int64)
    found[filled] = keys.view(np.int64)
    return found


def algorithm() -> str:
    """The version of the hash functions: signatures of two versions cannot be compared."""
    try:
        from rensa import RMinHash  # pyright: ignore[reportAttributeAccessIssue]  made in Rust, has no types
    except ModuleNotFoundError:
        return "rensa is missing"
    return f"rensa {RMinHash.ALGORITHM_VERSION}"
