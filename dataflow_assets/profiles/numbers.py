"""Many numbers in few: quantiles, extremes and a histogram. All values are given in ascending order."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

QUANTILES = {"p01": 0.01, "p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}
_BINS = 20


class Sums(NamedTuple):
    """What is known exactly of the finite numbers of a column."""

    numbers: int = 0
    mean: float = 0.0
    smallest: float | None = None
    largest: float | None = None

    def plus(self, other: "Sums") -> "Sums":
        """Of both columns together."""
        low = [value for value in (self.smallest, other.smallest) if value is not None]
        high = [value for value in (self.largest, other.largest) if value is not None]
        ends = min(low, default=None), max(high, default=None)
        numbers = self.numbers + other.numbers
        # A sum may be beyond the largest float where a mean is not.
        mean = sum(each.mean * (each.numbers / numbers) for each in (self, other)) if numbers else 0.0
        return Sums(numbers, mean, *ends)


def quantile(values: np.ndarray, share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return float(values[max(math.ceil(share * len(values)) - 1, 0)])


def quantiles(values: np.ndarray, names: Iterable[str] = QUANTILES) -> dict[str, float]:
    """These quantiles, by their names."""
    return {name: quantile(values, QUANTILES[name]) for name in names}


def described(values: np.ndarray, exact: Sums | None = None) -> dict:
    """Count, extremes, mean, quantiles and histogram of a sample's values; at least one."""
    found = {
        "count": len(values),
        "min": float(values[0]),
        "max": float(values[-1]),
        "mean": float(values.mean()),
    }
    if exact is not None and exact.numbers and exact.smallest is not None and exact.largest is not None:
        found = {
            "count": exact.numbers,
            "min": exact.smallest,
            "max": exact.largest,
            "mean": exact.mean,
        }
    shown = {name: _short(value) for name, value in {**found, **quantiles(values)}.items()}
    return {**shown, "histogram": histogram(values)}


def histogram(values: np.ndarray) -> dict:
    """At most 20 bins of equal width up to the 99th percentile; the last one has the rest too."""
    edges = _edges(values)
    return {"edges": [_short(edge) for edge in edges.tolist()], "counts": _counts(values, edges)}


def shared_histograms(
    values: np.ndarray, others: np.ndarray | None = None
) -> tuple[list[float], list[int], list[int] | None]:
    """Edges and counts of the values, and the counts of others in the same bins, scaled to as many values."""
    both = values if others is None else np.sort(np.concatenate([values, others]), kind="stable")
    edges = _edges(both)
    if others is None:
        return edges.tolist(), _counts(values, edges), None
    scale = len(values) / len(others)
    scaled = [round(count * scale) for count in _counts(others, edges)]
    return edges.tolist(), _counts(values, edges), scaled


def _edges(values: np.ndarray) -> np.ndarray:
    low, high = float(values[0]), quantile(values, 0.99)
    whole = bool(np.all(values == np.floor(values)))
    if high <= low:
        return np.array([low, low + (1 if whole else max(abs(low), 1) * 1e-9)])
    if not whole:
        return np.linspace(low, high, _BINS + 1)
    width = max(1.0, np.ceil((high - low + 1) / _BINS))
    return low + width * np.arange(int(np.ceil((high - low + 1) / width)) + 1)


def _counts(values: np.ndarray, edges: np.ndarray) -> list[int]:
    below = np.searchsorted(values, edges[1:-1], side="left")
    return np.diff(below, prepend=0, append=len(values)).tolist()


def _short(value: float) -> float | int:
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.6g}")
