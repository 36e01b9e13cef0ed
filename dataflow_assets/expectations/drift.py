"""How far a distribution is from that of a reference: PSI of numbers, Jensen-Shannon of values."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dataflow_assets.expectations.bounds import chi_square_bound
from dataflow_assets.profiles.profile import ColumnProfile, Profile

_DECILES = np.arange(1, 10) / 10
_NATS_OF_A_BIT = math.log(2)
_OTHERS = "…"
_NUMBER_BITS = "number_bits"
# A batch counts its 16 most frequent values at least: one with more than a 17th of the rows is among them.
_SURELY_COUNTED = 1 / 17


class Bins(NamedTuple):
    """How many values lie up to each edge and above the one before, and how many above the last."""

    edges: list[float]
    counts: list[int]


class Distance(NamedTuple):
    """A distance, what it may be by chance where both have one distribution, and how many values were seen.

    `grown` is the place, or the value, whose share grew most.
    """

    value: float
    by_chance: float
    seen: int
    seen_before: int
    grown: int | str


def reference_of(profile: Profile) -> dict:
    """What drift is measured against, as plain JSON: bins of each measure, counts of each label and value."""
    return {
        "rows": profile.rows,
        _NUMBER_BITS: 64,
        "columns": {name: _column(profile, name, column) for name, column in profile.columns.items()},
    }


def as_kept(reference: Mapping, values: np.ndarray) -> np.ndarray:
    """The values as those of the reference were kept, of which the edges are: once as floats of 32 bits."""
    return values if reference.get(_NUMBER_BITS) == 64 else values.astype(np.float32)


def _column(profile: Profile, name: str, column: ColumnProfile) -> dict:
    measures = (*column.sampled.cheap, *column.sampled.deep)
    numbers = {measure: profile.measure(name, measure) for measure in measures}
    found: dict = {
        "numbers": {measure: deciles(values)._asdict() for measure, values in numbers.items() if len(values)},
        "labels": {label: dict(profile.labels(name, label)) for label in column.sampled.labels},
    }
    if column.kind in ("string", "bool"):
        found["values"] = value_counts(profile.rows, column)
    return found


def value_counts(rows: int, column: ColumnProfile) -> dict[str, int]:
    """How often each frequent value is there; the others together are `…`."""
    counts = dict(column.top)
    others = rows - column.nulls - sum(counts.values())
    return {**counts, _OTHERS: counts.get(_OTHERS, 0) + others} if others > 0 else counts


def deciles(values: np.ndarray) -> Bins:
    """Ten bins of equal counts; a value that fills more than one of them has a bin of its own."""
    cuts = np.quantile(values, _DECILES, method="inverted_cdf").astype(np.float64)
    edges: list[float] = []
    for cut, count in zip(*np.unique(cuts, return_counts=True), strict=True):
        if count > 1:
            edges.append(float(np.nextafter(cut, -math.inf)))
        edges.append(float(cut))
    return Bins(edges, counts_in(edges, values))


def counts_in(edges: Sequence[float], values: np.ndarray) -> list[int]:
    """How many of the values are in each bin."""
    return np.bincount(places_in(edges, values), minlength=len(edges) + 1).tolist()


def places_in(edges: Sequence[float], values: np.ndarray) -> np.ndarray:
    """In which bin each value is."""
    return np.searchsorted(np.array(edges), values.astype(np.float64), side="left")


def population_stability(before: Bins, values: np.ndarray) -> Distance:
    """PSI of the values against the bins of a reference, half a value added to each bin."""
    counts = counts_in(before.edges, values)
    now, then = _smoothed(counts), _smoothed(before.counts)
    value = float(np.sum((now - then) * np.log(now / then)))
    seen, seen_before = len(values), sum(before.counts)
    filled = sum(1 for pair in zip(counts, before.counts, strict=True) if any(pair))
    by_chance = chi_square_bound(max(1, filled - 1)) * (1 / max(1, seen) + 1 / max(1, seen_before))
    return Distance(value, by_chance, seen, seen_before, int(np.argmax(now - then)))


def jensen_shannon(before: Mapping[str, int], now: Mapping[str, int]) -> Distance:
    """The divergence of the shares of values, in bits: 0 for equal ones, 1 where none is in common.

    Where some values are counted as `…` only, so are all that are rare on both sides: a value that is
    counted by itself on one of them would else seem to be new.
    """
    if _OTHERS in before or _OTHERS in now:
        frequent = {*_frequent(before), *_frequent(now)}
        before, now = _with_others(before, frequent), _with_others(now, frequent)
    names = sorted({*before, *now})
    seen, seen_before = sum(now.values()), sum(before.values())
    one = np.array([now.get(name, 0) for name in names]) / max(1, seen)
    other = np.array([before.get(name, 0) for name in names]) / max(1, seen_before)
    middle = (one + other) / 2
    value = float((_divergence(one, middle) + _divergence(other, middle)) / 2)
    by_chance = chi_square_bound(max(1, len(names) - 1)) / (8 * _NATS_OF_A_BIT)
    by_chance *= 1 / max(1, seen) + 1 / max(1, seen_before)
    return Distance(max(0.0, value), by_chance, seen, seen_before, names[int(np.argmax(one - other))])


def _frequent(counts: Mapping[str, int]) -> list[str]:
    least = _SURELY_COUNTED * sum(counts.values())
    return [name for name, count in counts.items() if count > least]


def _with_others(counts: Mapping[str, int], named: Collection[str]) -> dict[str, int]:
    """The counts of these; all others are `…`."""
    found = {name: counts[name] for name in counts if name in named and name != _OTHERS}
    return {**found, _OTHERS: sum(counts.values()) - sum(found.values())}


def _smoothed(counts: Sequence[int]) -> np.ndarray:
    more = np.array(counts, np.float64) + 0.5
    return more / more.sum()


def _divergence(one: np.ndarray, other: np.ndarray) -> float:
    there = one > 0
    return float(np.sum(one[there] * np.log2(one[there] / other[there])))
