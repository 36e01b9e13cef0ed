"""Which rows and texts are in the sample: those whose hash is small, so that samples of batches add up.

A row is sampled where the hash of its `row_id` is below a part of all hashes, whatever batch it is in; a
text is counted where its own hash is. The sample of two batches together is the sample of their rows, and
a sample at a lower rate is part of one at a higher rate (threshold sampling, Duffield et al. 2007).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

_ALL_HASHES = 2**64
_MIN_BYTES, _MAX_BYTES, _SHARE = 2**20, 2**24, 0.01
_ROWS_FOR_ONE_DEEP = 16
MOST_ROWS_OF_A_BATCH = 8192
UPPER_HALF = np.uint64(0xFFFFFFFF00000000)


class Rates(NamedTuple):
    """Parts of the rows, between 0 and 1: measured in all ways, and in the cheap ones."""

    deep: float = 1.0
    cheap: float = 1.0


def rates_for(source_bytes: int, share: float | None = None) -> Rates:
    """The rates for a source of so many bytes: a hundredth of it, at least 1 MB and at most 16 MB.

    Measures cost time for each byte, so bytes are what is shared out. `share` is a given part instead.
    """
    if share is None:
        share = max(_MIN_BYTES, min(_MAX_BYTES, _SHARE * source_bytes)) / max(source_bytes, 1)
    deep = min(1.0, share)
    return Rates(deep, min(1.0, _ROWS_FOR_ONE_DEEP * deep))


def hashes_of(values: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A 64-bit hash of each value; null is a value of its own."""
    return pl.Series(values).hash().to_numpy()


def fingerprint_of_hashing() -> str:
    """Changes where another version of polars hashes otherwise; samples of the two do not add up."""
    return str(hashes_of(pa.array(["dataflow_assets", None], pa.large_string())).tolist())


def below(hashes: np.ndarray, rate: float) -> np.ndarray:
    """Whether each hash is in the sample of this rate."""
    if rate >= 1:
        return np.ones(len(hashes), bool)
    return hashes < np.uint64(int(rate * _ALL_HASHES))


def joined(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Hashes of two values together: that of the first in the upper half, by which they are sampled."""
    return (upper & UPPER_HALF) | (lower >> np.uint64(32))


def at_most(hashes: np.ndarray, rate: float, rows: int) -> float:
    """The rate, halved until it samples so many rows at most."""
    while np.count_nonzero(below(hashes, rate)) > rows:
        rate /= 2
    return rate


class Contents(NamedTuple):
    """Values by their hash, and how often each is there: those whose hash is in the sample of `rate`."""

    hashes: np.ndarray
    counts: np.ndarray
    rate: float

    @classmethod
    def of(cls, hashes: np.ndarray, rate: float) -> "Contents":
        """The values with these hashes."""
        distinct, counts = np.unique(hashes[below(hashes, rate)], return_counts=True)
        return cls(distinct, counts, rate)

    @classmethod
    def merged(cls, parts: "Sequence[Contents]") -> "Contents":
        """The values of all parts, at the lowest of their rates."""
        rate = min((part.rate for part in parts), default=1.0)
        thin = [part.at(rate) for part in parts]
        hashes = np.concatenate([np.empty(0, np.uint64), *(part.hashes for part in thin)])
        counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in thin)])
        distinct, places = np.unique(hashes, return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, places, counts)
        return cls(distinct, sums, rate)

    def at(self, rate: float) -> "Contents":
        """The sample at a lower rate."""
        if rate >= self.rate:
            return self
        kept = below(self.hashes, rate)
        return Contents(self.hashes[kept], self.counts[kept], rate)

    @property
    def distinct(self) -> int:
        """How many different values there are: exact at rate 1, else an estimate."""
        return round(len(self.hashes) / self.rate)

    @property
    def duplicates(self) -> float | None:
        """The share of values that repeat an earlier one; None without values."""
        total = int(self.counts.sum())
        return (total - len(self.hashes)) / total if total else None
