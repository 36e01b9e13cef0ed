"""The order in which the rows of a data set come: an endless stream of passes, shuffled block by block.

Everything is a function of the seed and the position: any stretch of the stream can be had without
what is before it, in any process, so that a loader resumes at a number and shares are ranges of it.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Located(NamedTuple):
    """Where each row of a stretch is: the number of its block, and its number in the block."""

    blocks: Numbers
    rows: Numbers


class _Pass(NamedTuple):
    """The order of the blocks in one pass.

    `starts` has the position at which each block in `blocks` begins, and the end; window n is from
    `edges[n]` to `edges[n + 1]`.
    """

    blocks: Numbers
    starts: Numbers
    edges: Numbers


def random_state(*key: int) -> np.random.RandomState:
    """A generator for this key; numpy keeps what it gives the same for ever (NEP 19)."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(key)))


@dataclass(frozen=True)
class Order:
    """The stream of passes over blocks of `rows` rows and `sizes` bytes, none of them empty.

    Without `seed` each pass is the natural order. With it, a pass has the blocks in an order of its own
    and, over windows of consecutive blocks of about `window_bytes`, the rows too.
    """

    rows: Sequence[int]
    sizes: Sequence[int]
    seed: tuple[int, ...] | None
    window_bytes: int
    _passes: "OrderedDict[int, _Pass]" = field(default_factory=OrderedDict, compare=False, repr=False)
    _windows: "OrderedDict[tuple[int, int], Numbers]" = field(
        default_factory=OrderedDict, compare=False, repr=False
    )

    @cached_property
    def total(self) -> int:
        """The rows of one pass."""
        return sum(self.rows)

    def locate(self, start: int, stop: int) -> Located:
        """Where the rows from position `start` to before `stop` of the stream are."""
        parts: list[Located] = []
        total = self.total
        while start < stop:
            number, place = divmod(start, total)
            end = min(total, place + stop - start)
            parts += self._in_pass(number, place, end)
            start += end - place
        if not parts:
            return Located(np.empty(0, np.int64), np.empty(0, np.int64))
        return Located(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def runs(self, start: int, stop: int) -> Iterator[tuple[int, range]]:
        """The same for the natural order, as the blocks and which consecutive rows of each."""
        starts = self._pass(0).starts
        while start < stop:
            place = start % self.total
            block = int(np.searchsorted(starts, place, "right")) - 1
            first = place - int(starts[block])
            run = range(first, min(self.rows[block], first + stop - start))
            yield block, run
            start += len(run)

    def _in_pass(self, number: int, place: int, end: int) -> list[Located]:
        if self.seed is None:
            return [_located(self._pass(0), np.arange(place, end))]
        found, parts = self._pass(number), []
        window = int(np.searchsorted(found.edges, place, "right")) - 1
        while place < end:
            first, last = int(found.edges[window]), int(found.edges[window + 1])
            shuffled = self._window(number, window, last - first)
            until = min(end, last)
            parts.append(_located(found, first + shuffled[place - first : until - first]))
            place, window = until, window + 1
        return parts

    def _pass(self, number: int) -> _Pass:
        if number not in self._passes:
            count = len(self.rows)
            blocks = (
                np.arange(count) if self.seed is None else random_state(*self.seed, number).permutation(count)
            )
            starts = np.append(0, np.cumsum(np.asarray(self.rows, np.int64)[blocks]))
            before = np.append(0, np.cumsum(np.asarray(self.sizes, np.int64)[blocks])[:-1])
            first_of_window = np.flatnonzero(np.diff(before // self.window_bytes, prepend=-1))
            self._passes[number] = _Pass(blocks, starts, np.append(starts[first_of_window], starts[-1]))
            _forget_oldest(self._passes, 2)
        return self._passes[number]

    def _window(self, number: int, window: int, rows: int) -> Numbers:
        assert self.seed is not None
        key = (number, window)
        if key not in self._windows:
            self._windows[key] = random_state(*self.seed, number, window + 1).permutation(rows)
            _forget_oldest(self._windows, 8)
        self._windows.move_to_end(key)
        return self._windows[key]


def _located(found: _Pass, positions: Numbers) -> Located:
    places = np.searchsorted(found.starts, positions, "right") - 1
    return Located(found.blocks[places], positions - found.starts[places])


def _forget_oldest(kept: OrderedDict, most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
