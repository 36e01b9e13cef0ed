"""How far a share or a quantile of all rows may be from that of the rows that were seen.

Each bound holds alone with the probability `1 - risk`. Few cases: Clopper and Pearson (1934), exact;
many: Wilson (1927). Ranks of quantiles: the binomial distribution of how many values lie below.
"""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

RISK = 0.001
_FEW = 50
_BISECTIONS = 60


def share_bounds(cases: int, rows: int, risk: float = RISK) -> tuple[float, float]:
    """The lower and the upper bound of a share of which `cases` of `rows` rows were seen."""
    if not rows:
        return 0.0, 1.0
    if rows - cases < cases:
        low, high = share_bounds(rows - cases, rows, risk)
        return 1 - high, 1 - low
    if cases < _FEW:
        low = 0.0 if not cases else _share_where(cases - 1, rows, 1 - risk)
        return low, _share_where(cases, rows, risk)
    z = deviations(risk)
    share, spread = cases / rows, z * z / rows
    middle = (share + spread / 2) / (1 + spread)
    margin = z * math.sqrt(share * (1 - share) / rows + spread / (4 * rows)) / (1 + spread)
    return max(0.0, middle - margin), min(1.0, middle + margin)


def deviations(risk: float = RISK) -> float:
    """The standard deviations that a normal value exceeds with this probability."""
    return NormalDist().inv_cdf(1 - risk)


def chi_square_bound(freedom: int, risk: float = RISK) -> float:
    """What a chi-square value exceeds with this probability (Wilson and Hilferty 1931)."""
    spread = 2 / (9 * freedom)
    return freedom * max(0.0, 1 - spread + deviations(risk) * math.sqrt(spread)) ** 3


def quantile_bounds(values: np.ndarray, level: float, risk: float = RISK) -> tuple[float, float]:
    """Between which values the quantile of all rows is; infinite where the values are too few to say."""
    size = len(values)
    below, above = _ranks(size, level, risk)
    low, high = -math.inf, math.inf
    wanted = [rank for rank in (below, above - 1) if 0 <= rank < size]
    if wanted:
        parted = np.partition(values, wanted)
        low = float(parted[below]) if below >= 0 else low
        high = float(parted[above - 1]) if above <= size else high
    return low, high


@lru_cache(maxsize=256)
def _ranks(size: int, level: float, risk: float) -> tuple[int, int]:
    """So few values below a number, or so many, that it is not the quantile: `risk` each."""
    variance = size * level * (1 - level)
    if variance > 2 * _FEW:
        margin = deviations(risk) * math.sqrt(variance)
        return math.floor(size * level - margin) - 1, math.ceil(size * level + margin) + 1
    counts = np.arange(size + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])
    chances = np.exp(
        logs[-1] - logs - logs[::-1] + counts * math.log(level) + counts[::-1] * math.log1p(-level)
    )
    at_most, at_least = np.cumsum(chances), np.cumsum(chances[::-1])[::-1]
    few, many = np.flatnonzero(at_most < risk), np.flatnonzero(at_least < risk)
    return (int(few[-1]) if len(few) else -1), (int(many[0]) if len(many) else size + 1)


def _share_where(cases: int, rows: int, chance: float) -> float:
    """The share at which at most `cases` of the rows are such with this probability."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _chance_of_at_most(cases, rows, middle) > chance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _chance_of_at_most(cases: int, rows: int, share: float) -> float:
    if share <= 0 or share >= 1:
        return 1.0 if share <= 0 or cases >= rows else 0.0
    one, other, all_ways = math.log(share), math.log1p(-share), math.lgamma(rows + 1)
    return sum(
        math.exp(
            all_ways
            - math.lgamma(count + 1)
            - math.lgamma(rows - count + 1)
            + count * one
            + (rows - count) * other
        )
        for count in range(cases + 1)
    )
