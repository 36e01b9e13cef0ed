"""Which rows and texts are in the sample: those whose hash is small, so that samples of batches add up.

A row is sampled where the hash of its `row_id` is below a part of all hashes, whatever batch it is in; a
text is counted where its own hash is. The sample of two batches together is the sample of their rows, and
a sample at a lower rate is part of one at a higher rate (threshold sampling, Duffield et al. 2007).
"""

from collections.abc import Sequence
from functools import cache, reduce
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

_ALL_HASHES = 2**64
_MIN_BYTES, _MAX_BYTES, _SHARE = 2**19, 2**24, 0.0025
_ROWS_FOR_ONE_DEEP = 16
MOST_ROWS_OF_A_BATCH = 8192
_MOST_CONTENTS = 8192
_UPPER_HALF = np.uint64(0xFFFFFFFF00000000)


class Rates(NamedTuple):
    """Parts of the rows, between 0 and 1: measured in all ways, and in the cheap ones."""

    deep: float = 1.0
    cheap: float = 1.0


def rates_for(source_bytes: int, share: float | None = None) -> Rates:
    """The rates for a source of so many bytes: 0.25% of it, at least 0.5 MB and at most 16 MB.

    Measures cost time for each byte, so bytes are what is shared out. `share` is a given part instead.
    """
    if share is None:
        share = max(_MIN_BYTES, min(_MAX_BYTES, _SHARE * source_bytes)) / max(source_bytes, 1)
    deep = min(1.0, share)
    return Rates(deep, min(1.0, _ROWS_FOR_ONE_DEEP * deep))


def hashes_of(values: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A 64-bit hash of each value; null is a value of its own."""
    return pl.Series(values).hash().to_numpy()


@cache
def fingerprint_of_hashing() -> str:
    """Changes where another version of polars hashes otherwise; samples of the two do not add up."""
    return str(hashes_of(pa.array(["dataflow_assets", None], pa.large_string())).tolist())


def below(hashes: np.ndarray, rate: float) -> np.ndarray:
    """Whether each hash is in the sample of this rate."""
    if rate >= 1:
        return np.ones(len(hashes), bool)
    return hashes < _end_of(rate)


def _end_of(rate: float) -> np.uint64:
    """The smallest hash that is not in the sample of this rate, which is below 1."""
    return np.uint64(int(rate * _ALL_HASHES))


def joined(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Hashes of two values together: that of the first in the upper half, by which they are sampled.

    Different values may get the same hash: where all have the first value in common, two of the 8,192 of a
    sample do in one sample of a hundred; where they have not, practically never.
    """
    return (upper & _UPPER_HALF) | (lower >> np.uint64(32))


def at_most(hashes: np.ndarray, rate: float, rows: int) -> float:
    """The rate, halved until it samples so many rows at most."""
    while np.count_nonzero(below(hashes, rate)) > rows:
        rate /= 2
    return rate


def counted(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different hashes in ascending order, and how often each is there."""
    ordered = np.sort(hashes)
    distinct, places = _firsts_of(ordered)
    return distinct, np.diff(places, append=len(ordered))


def _firsts_of(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values of an ascending array, and the first place of each."""
    begins = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    places = np.flatnonzero(begins)
    return ordered[places], places


class Contents(NamedTuple):
    """Values by their hash, ascending, and how often each is there: those in the sample of `rate`.

    At most 8,192 values, then half of them: the rate depends on which values there are, not on how they
    came in parts (distinct values by the smallest hashes, Bar-Yossef et al. 2002). An estimate of how many
    there are has a standard error of at most 1.6%.
    """

    hashes: np.ndarray
    counts: np.ndarray
    rate: float

    @classmethod
    def of(cls, hashes: np.ndarray, rate: float = 1.0) -> "Contents":
        """The values with these hashes, at this rate at most."""
        return cls.of_counted(*counted(hashes[below(hashes, rate)]), rate)

    @classmethod
    def of_counted(cls, distinct: np.ndarray, counts: np.ndarray, rate: float = 1.0) -> "Contents":
        """These values, all that there are at this rate."""
        found = cls(distinct, counts, rate)
        while len(found.hashes) > _MOST_CONTENTS:
            found = found.at(found.rate / 2)
        return found

    @classmethod
    def merged(cls, parts: "Sequence[Contents]") -> "Contents":
        """The values of all parts, at the lowest of their rates or at a lower one."""
        rate = highest = min((part.rate for part in parts), default=1.0)
        while sum(len(part.at(rate).hashes) for part in parts) > 2 * _MOST_CONTENTS:
            rate /= 2
        found = cls._together([part.at(rate) for part in parts], rate)
        while found.rate == rate < highest:  # parts have values in common: there may be room for more
            rate *= 2
            more = cls._together([part.at(rate) for part in parts], rate)
            found = more if more.rate == rate else found
        return found

    @classmethod
    def _together(cls, parts: "Sequence[Contents]", rate: float) -> "Contents":
        """The values of all parts, which are at this rate."""
        hashes = np.concatenate([np.empty(0, np.uint64), *(part.hashes for part in parts)])
        order = np.argsort(hashes, kind="stable")
        distinct, places = _firsts_of(hashes[order])
        counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)])[order]
        return cls.of_counted(distinct, np.add.reduceat(counts, places) if len(places) else counts, rate)

    def at(self, rate: float) -> "Contents":
        """The sample at a lower rate."""
        if rate >= self.rate:
            return self
        kept = int(np.searchsorted(self.hashes, _end_of(rate)))
        return Contents(self.hashes[:kept], self.counts[:kept], rate)

    @property
    def distinct(self) -> int:
        """How many different values there are: exact at rate 1, else an estimate."""
        return round(len(self.hashes) / self.rate)

    @property
    def duplicates(self) -> float | None:
        """The share of values that repeat an earlier one; None without values."""
        total = int(self.counts.sum())
        return (total - len(self.hashes)) / total if total else None


class Labelled(NamedTuple):
    """Inputs as `Contents` keeps them, each with the smallest and the largest hash of its labels.

    An input has more than one label where the two differ. Hashes are of 64 bits: of 1,000,000,000 different
    inputs two are taken for one in the sample with a probability of 10^-6.
    """

    inputs: Contents
    lowest: np.ndarray
    highest: np.ndarray

    @classmethod
    def of(cls, inputs: np.ndarray, labels: np.ndarray) -> "Labelled":
        """The rows with these hashes of input and label."""
        return cls._grouped(inputs, np.ones(len(inputs), np.int64), labels, labels, 1.0)

    @classmethod
    def merged(cls, parts: "Sequence[Labelled]") -> "Labelled":
        """The rows of all parts, at least one."""
        return reduce(Labelled._plus, parts)

    @property
    def conflicting(self) -> np.ndarray:
        """Whether each input has more than one label."""
        return self.lowest != self.highest

    def _plus(self, other: "Labelled") -> "Labelled":
        rate = min(self.inputs.rate, other.inputs.rate)
        thin = [part.inputs.at(rate) for part in (self, other)]
        sizes = [len(inputs.hashes) for inputs in thin]
        return self._grouped(
            np.concatenate([inputs.hashes for inputs in thin]),
            np.concatenate([inputs.counts for inputs in thin]),
            np.concatenate([self.lowest[: sizes[0]], other.lowest[: sizes[1]]]),
            np.concatenate([self.highest[: sizes[0]], other.highest[: sizes[1]]]),
            rate,
        )

    @classmethod
    def _grouped(
        cls, hashes: np.ndarray, counts: np.ndarray, lowest: np.ndarray, highest: np.ndarray, rate: float
    ) -> "Labelled":
        """Those with the same input together."""
        order = np.argsort(hashes, kind="stable")
        distinct, places = _firsts_of(hashes[order])
        if len(places):
            counts = np.add.reduceat(counts[order], places)
            lowest = np.minimum.reduceat(lowest[order], places)
            highest = np.maximum.reduceat(highest[order], places)
        inputs = Contents.of_counted(distinct, counts, rate)
        size = len(inputs.hashes)
        return cls(inputs, lowest[:size], highest[:size])
