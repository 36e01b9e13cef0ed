"""Texts put aside on disk while a decision looks at some of them again and again."""

import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType

import numpy as np

from dataflow_assets.errors import StorageError

_CACHED_NUMBERS = 1 << 23  # 64 MiB


class ScratchTexts:
    """Texts in a file without a name, which is gone when the process is; what is made of them is cached."""

    def __init__(self, made_of: Callable[[str], np.ndarray]) -> None:
        self._made_of = made_of
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by `with`
        self._ends = [0]
        self._cache: OrderedDict[int, np.ndarray] = OrderedDict()
        self._cached_numbers = 0

    def __enter__(self) -> "ScratchTexts":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, text: str) -> None:
        """Puts the next text aside. Raises StorageError where the disk is full."""
        try:
            self._ends.append(self._ends[-1] + self._file.write(text.encode()))
        except OSError as error:
            raise StorageError(
                f"the texts to compare cannot be put aside in {tempfile.gettempdir()}: {error.strerror}; "
                "make room, or set TMPDIR to another folder"
            ) from error

    def __getitem__(self, number: int) -> np.ndarray:
        """What `made_of` makes of this text."""
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        made = self._cache[number] = self._made_of(self._read(number))
        self._cached_numbers += made.size
        while self._cached_numbers > _CACHED_NUMBERS and len(self._cache) > 1:
            self._cached_numbers -= self._cache.popitem(last=False)[1].size
        return made

    def _read(self, number: int) -> str:
        self._file.flush()
        begin, end = self._ends[number : number + 2]
        return os.pread(self._file.fileno(), end - begin, begin).decode()
