"""Texts put aside on disk while a decision looks at some of them again and again."""

import os
import tempfile
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from types import TracebackType

import numpy as np

from dataflow_assets.operators.table_rows import put_aside

_CACHED_NUMBERS = 1 << 23  # 64 MiB
_READ_BYTES = 1 << 18


class ScratchTexts:
    """Texts in a file without a name, which is gone when the process is; what is made of them is cached."""

    def __init__(self, made_of: Callable[[Sequence[str]], Iterable[np.ndarray]]) -> None:
        self._made_of = made_of
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by `with`
        self._ends = [0]
        self._cache: OrderedDict[int, np.ndarray] = OrderedDict()
        self._cached_numbers = 0
        self._next = 0

    def __enter__(self) -> "ScratchTexts":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what a full disk did not take is told already, or needed no more
            self._file.close()

    def append(self, text: str) -> None:
        """Puts the next text aside. Raises StorageError where the disk is full."""
        data = text.encode()
        with put_aside("the texts to compare"):
            self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))

    def __getitem__(self, number: int) -> np.ndarray:
        """What `made_of` makes of this text; asked for in order, texts are read some at a time."""
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        end = number + 1
        if number >= self._next:
            self._next = end = max(end, bisect_right(self._ends, self._ends[number] + _READ_BYTES) - 1)
        texts = self._read(number, end)
        for place, made in enumerate(self._made_of(texts), number):
            self._cache[place] = made
            self._cached_numbers += made.size
        wanted = self._cache[number]
        while self._cached_numbers > _CACHED_NUMBERS:
            self._cached_numbers -= self._cache.popitem(last=False)[1].size
        return wanted

    def _read(self, begin: int, end: int) -> list[str]:
        with put_aside("the texts to compare"):
            self._file.flush()
        edges = self._ends[begin : end + 1]
        data = os.pread(self._file.fileno(), edges[-1] - edges[0], edges[0])
        return [data[low - edges[0] : high - edges[0]].decode() for low, high in pairwise(edges)]
