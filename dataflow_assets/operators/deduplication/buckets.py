"""Candidates by shared buckets (LSH): which earlier rows that stay might a row repeat?"""

from collections.abc import Iterable

import numpy as np

# A row is compared with this many rows that stay of one bucket, the latest: what thousands of pages
# share by chance (a menu, a licence) would otherwise cost the square of their number.
MAX_PER_BUCKET = 100
_NONE = -1


def shared_buckets(keys: Iterable[np.ndarray], slots: int, present: np.ndarray) -> np.ndarray:
    """For each row and each of the `slots` arrays of keys its bucket, -1 where it is alone there.

    Two rows share a bucket where they have the same key in the same array.
    """
    buckets = np.full((len(present), slots), _NONE, np.int32)
    rows = np.flatnonzero(present)
    first = 0
    for slot, column in enumerate(keys):
        _, inverse, counts = np.unique(column[rows], return_inverse=True, return_counts=True)
        shared = counts > 1
        numbers = np.where(shared, np.cumsum(shared) + (first - 1), _NONE)
        buckets[rows, slot] = numbers[inverse]
        first += int(shared.sum())
    return buckets


class KeptRows:
    """The rows that stay, by their buckets; rows are asked about in ascending order and then kept or not."""

    def __init__(self, buckets: np.ndarray) -> None:
        self._buckets = buckets
        self._latest = np.full(int(buckets.max(initial=_NONE)) + 1, _NONE, np.int64)
        self._before = np.full(buckets.size, _NONE, np.int64)

    def sharing(self, row: int) -> list[int]:
        """The kept rows that share a bucket with this one, in order; once for each bucket they share."""
        found: list[int] = []
        width = self._buckets.shape[1]
        for bucket in self._of(row):
            place, steps = int(self._latest[bucket]), 0
            while place >= 0 and steps < MAX_PER_BUCKET:
                found.append(place // width)
                place, steps = int(self._before[place]), steps + 1
        return sorted(found)

    def keep(self, row: int) -> None:
        """Later rows are compared with this one."""
        width = self._buckets.shape[1]
        for slot, bucket in enumerate(self._buckets[row].tolist()):
            if bucket >= 0 and self._latest[bucket] // width != row:
                self._before[row * width + slot] = self._latest[bucket]
                self._latest[bucket] = row * width + slot

    def _of(self, row: int) -> set[int]:
        return set(self._buckets[row].tolist()) - {_NONE}
