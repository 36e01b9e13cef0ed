"""Lines of JSON in one buffer, and where the text of each JSON column begins and ends in them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl
import pyarrow as pa

from dataflow_assets.batch import ColumnType

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Cuts = dict[str, tuple[Positions, Positions]]


def texts_between(edges: Positions, data: pa.Buffer) -> pa.Array:
    """The texts between each two neighbouring edges; nothing is copied or checked."""
    return pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)


def spans(begins: Positions, ends: Positions, data: pa.Buffer) -> pa.Array:
    """The texts from each begin to its end, copied; both go upwards and do not overlap."""
    edges = np.column_stack([begins, ends]).ravel()
    return texts_between(edges, data).take(pa.array(np.arange(0, len(edges), 2)))


class Lines(NamedTuple):
    """All lines of a buffer: line n is from `starts[n]` to `ends[n]`, its newline or a blank before it."""

    data: pa.Buffer
    starts: Positions
    ends: Positions

    @classmethod
    def of(cls, data: pa.Buffer) -> "Lines":
        """The lines of a buffer that ends with a newline."""
        characters = np.frombuffer(data, np.uint8)
        newlines = np.flatnonzero(characters == ord("\n"))
        return cls(data, np.append(0, newlines[:-1] + 1), newlines - (characters[newlines - 1] == ord(" ")))

    def find(self, mark: str, begins: Positions) -> Positions:
        """Where `mark` stands first in each line, not before `begins`; -1 where it does not."""
        edges = np.append(np.column_stack([self.starts, begins]).ravel(), self.data.size)
        rests = pl.Series(texts_between(edges, self.data)).gather_every(2, offset=1)
        offsets = rests.str.find(mark, literal=True).cast(pl.Int64).fill_null(-1).to_numpy()
        return np.where(offsets < 0, -1, begins + offsets)


def key_of(name: str) -> str:
    """The key of a column as it stands in a line."""
    return orjson.dumps(name).decode() + ":"


def is_findable(name: str) -> bool:
    """Whether `,"name":` can stand in a line only as a key, so that `cut` may look for it.

    The bytes `,"` could also end a string, but then neither a letter nor a digit follows.
    """
    return name[:1].isalnum()


def cut(lines: Lines, schema: Mapping[str, ColumnType]) -> tuple[Cuts, Mask]:
    """Where the text of each JSON column begins and ends, and for which lines this is certain.

    `,"name":` stands in no string, since quotes are escaped there: its first place after plain
    columns is the line's own key. After a JSON column this is certain only if there is no second
    place, since a nested object may have that key too. Lines with escaped surrogates are not
    certain, as pyarrow refuses them, nor are lines that `encode` would not write.
    """
    names = list(schema)
    marks = ["{" + key_of(names[0]), *("," + key_of(name) for name in names[1:])]
    certain = (lines.find("\\ud", lines.starts) < 0) & (_bytes_at(lines, lines.ends - 1) == ord("}"))
    cuts: Cuts = {}
    here = lines.starts
    for n, name in enumerate(names):
        if schema[name] != "json":
            continue
        begins = lines.find(marks[n], here)
        certain &= begins >= 0
        begins = np.where(certain, begins + len(marks[n].encode()), lines.starts)
        if n + 1 == len(names):
            here = lines.ends - 1
        else:
            here = lines.find(marks[n + 1], begins)
            certain &= here >= 0
            here = np.where(certain, here, lines.ends)
            certain &= lines.find(marks[n + 1], np.minimum(here + 1, lines.ends)) < 0
        cuts[name] = begins, here
    return cuts, certain


def _bytes_at(lines: Lines, places: Positions) -> npt.NDArray[np.uint8]:
    return np.frombuffer(lines.data, np.uint8)[places]
