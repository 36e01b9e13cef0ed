"""Rows of several data sets in one stream: how many of each in an epoch, and which position is whose."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Literal, NamedTuple

import numpy as np

from dataflow_assets.errors import ConfigError
from dataflow_assets.torch.order import Located, Numbers, Order, random_state

Until = Literal["shortest", "longest"]
_STRETCH = 1024


class Drawn(NamedTuple):
    """Where each row of a stretch is: the number of its data set, and the place in that."""

    sources: Numbers
    located: Located


@dataclass(frozen=True)
class Mix:
    """One stream of the rows of some orders; an epoch has `counts` rows of each.

    Within stretches of 1,024 rows each order has its share, rounded, in an order of `seed`; so a part
    of an epoch is mixed as the whole is. The next epoch goes on in each order where this one ends.
    """

    orders: Sequence[Order]
    counts: Sequence[int]
    seed: int

    @property
    def total(self) -> int:
        """The rows of an epoch."""
        return sum(self.counts)

    def locate(self, epoch: int, start: int, stop: int) -> Drawn:
        """Where the rows from position `start` to before `stop` of an epoch are."""
        labels, before = self._labels(epoch, start, stop)
        blocks, rows = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
        for number, (order, count) in enumerate(zip(self.orders, self.counts, strict=True)):
            mine = labels == number
            first = epoch * count + before[number]
            located = order.locate(first, first + int(mine.sum()))
            blocks[mine], rows[mine] = located
        return Drawn(labels, Located(blocks, rows))

    def _labels(self, epoch: int, start: int, stop: int) -> tuple[Numbers, list[int]]:
        """Whose each position is, and how many of each order come before the first of them."""
        if len(self.orders) == 1:
            return np.zeros(max(0, stop - start), np.int64), [start]
        first = start - start % _STRETCH
        labels = [np.empty(0, np.int64)]
        for begin in range(first, stop, _STRETCH):
            here, there = self._shares(begin), self._shares(min(begin + _STRETCH, self.total))
            each = np.repeat(np.arange(len(here)), np.subtract(there, here))
            labels.append(random_state(self.seed, 0, epoch, begin).permutation(each))
        drawn = np.concatenate(labels)
        head = np.bincount(drawn[: start - first], minlength=len(self.orders))
        before = [int(some + more) for some, more in zip(self._shares(first), head, strict=True)]
        return drawn[start - first : stop - first], before

    def _shares(self, position: int) -> list[int]:
        """How many of each order come before a position: rounded shares that only grow and add up."""
        shares, left, total = [], position, self.total
        for count in self.counts:
            share = left * count // total if total else 0
            shares.append(share)
            left, total = left - share, total - count
        return shares


def counts_of(rows: Sequence[int], weights: Sequence[float] | None, until: Until) -> list[int]:
    """How many rows of each data set an epoch has. Raises ConfigError for weights that cannot be.

    Without weights, all rows of each, once. With them, shares by weight: until the first is used up
    (`shortest`, no row twice) or until the last is (`longest`, all rows, and those of the others again).
    """
    if weights is None:
        return list(rows)
    if len(weights) != len(rows) or not all(map(_is_weight, weights)):
        raise ConfigError(
            f"weights {list(weights)!r} for {len(rows)} data sets; expected a number above 0 for each of them"
        )
    if not all(rows):
        raise ConfigError("a data set without rows has no share by weight; leave it out")
    given = [Fraction(one if isinstance(one, Rational | Decimal) else float(one)) for one in weights]
    parts = [weight / sum(given) for weight in given]
    totals = [count / part for count, part in zip(rows, parts, strict=True)]
    total = int(min(totals)) if until == "shortest" else -int(-max(totals) // 1)
    exact = [part * total for part in parts]
    counts = [int(each) for each in exact]
    by_rest = sorted(range(len(exact)), key=lambda number: counts[number] - exact[number])
    for number in by_rest[: total - sum(counts)]:
        counts[number] += 1
    return counts


def _is_weight(weight: object) -> bool:
    is_number = isinstance(weight, Real | Decimal)
    return is_number and bool(0 < weight < float("inf"))  # pyright: ignore[reportOperatorIssue]
