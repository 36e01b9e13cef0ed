"""Drops rows whose text has nearly the SimHash of an earlier one."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
import xxhash
from pydantic import Field

from dataflow_assets.operators.deduplication.shingles import (
    Shingles,
    Unit,
    packages_for,
    shingles,
    units_texts,
)
from dataflow_assets.operators.deduplication.simplified_text import normalized
from dataflow_assets.operators.deduplication.text_duplicates import TextDuplicatesOperator
from dataflow_assets.operators.deduplication.verdicts import Repeats, concatenated, numbers
from dataflow_assets.operators.operator import ColumnParams, Summaries
from dataflow_assets.operators.registry import register

_BITS = 64
_SIMHASH = "simhash"


class _SimHashParams(ColumnParams):
    unit: Unit = Field(
        "characters",
        description="What an n-gram is made of: `words` (Chinese is cut into words first) or `characters`.",
    )
    n: int = Field(4, ge=1, le=100, description="The units in an n-gram.")
    max_distance: int = Field(
        3, ge=0, le=7, description="The most bits of 64 in which two texts that are duplicates differ."
    )


@register
class DropSimHashDuplicates(TextDuplicatesOperator):
    """Drops every row whose 64-bit SimHash differs in few bits from that of an earlier row that stays.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Scope: the whole data set; the result depends on the order of the rows alone. A text's SimHash is
    the majority of each bit over the hashes of its n-grams, after the simplification of
    `drop_near_duplicates`; a text of fewer than `n` units is one n-gram, and one without any character
    but white space stays. Rejected rows have the reason `simhash_duplicate`, the `row_id` of the first
    row within reach in `duplicate_of`, and 1 - bits / 64 as `similarity`. SimHash knows the angle
    between two texts, not their shared n-grams, and short texts fall together: prefer
    `drop_near_duplicates`, which verifies. Words need the extra `dedup`; the others nothing.
    Raises ConfigError where the input has a column `duplicate_of` or `similarity`.

    Deciding holds about 400 bytes a row. Its time grows with the square of the rows, divided by
    65,536 at distance 3, by 512 at 6.
    Source: Charikar 2002; Manku et al. 2007, who take 3 bits of 64.

    Example:
        - {name: distinct, type: drop_simhash_duplicates, params: {column: text, max_distance: 3}}
    """

    name = "drop_simhash_duplicates"
    Params = _SimHashParams
    params: _SimHashParams
    rejects_for = "simhash_duplicate"

    def needed_packages(self) -> Mapping[str, str]:
        """What cuts Chinese into words."""
        return packages_for(self.params.unit)

    def fingerprints(self, texts: list[str]) -> pa.Table:
        """The SimHash of each text; that of a short one is its hash."""
        sets = shingles(units_texts(texts, self.params.unit), self.params.unit, self.params.n)
        hashes = simhashes(sets)
        blank = np.zeros(len(texts), bool)
        for place in np.flatnonzero(np.diff(sets.ends) == 0).tolist():
            whole = normalized(texts[place])
            blank[place] = not whole
            hashes[place] = xxhash.xxh3_64_intdigest(whole.encode())
        return pa.table({_SIMHASH: pa.array(hashes.view(np.int64), mask=blank)})

    def repeats(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats]:
        """Goes over the rows in order, comparing each SimHash with those that stay."""
        batches: list[tuple[str, int]] = []
        parts: list[np.ndarray] = []
        present: list[np.ndarray] = []
        for key, summary in summaries:
            batches.append((key, summary.num_rows))
            parts.append(numbers(summary[_SIMHASH]).view(np.uint64))
            present.append(summary[_SIMHASH].is_valid().to_numpy())
        rows = np.flatnonzero(concatenated(present, bool))
        values, firsts, which = np.unique(
            concatenated(parts, np.uint64)[rows], return_index=True, return_inverse=True
        )
        kept = _Kept(self.params.max_distance)
        originals, distances = rows[firsts], np.zeros(len(values), np.int64)
        for place in np.argsort(firsts).tolist():
            nearest = kept.first_within_reach(int(values[place]))
            if nearest is None:
                kept.keep(int(values[place]), int(rows[firsts[place]]))
            else:
                originals[place], distances[place] = nearest
        gone = originals[which] != rows
        return batches, Repeats(rows[gone], originals[which][gone], 1 - distances[which][gone] / _BITS)


class _Kept:
    """The SimHashes that stay, by blocks of bits: within reach one of `reach + 1` blocks is the same."""

    def __init__(self, reach: int) -> None:
        self._reach = reach
        edges = [_BITS * block // (reach + 1) for block in range(reach + 2)]
        self._blocks = [(low, (1 << (high - low)) - 1) for low, high in pairwise(edges)]
        self._found: list[dict[int, list[tuple[int, int]]]] = [{} for _ in self._blocks]

    def first_within_reach(self, value: int) -> tuple[int, int] | None:
        """The first row that was kept within reach of this SimHash, and its distance."""
        best: tuple[int, int] | None = None
        for (low, mask), found in zip(self._blocks, self._found, strict=True):
            for other, row in found.get(value >> low & mask, ()):
                if best is not None and row >= best[0]:
                    break
                distance = (value ^ other).bit_count()
                if distance <= self._reach:
                    best = (row, distance)
                    break
        return best

    def keep(self, value: int, row: int) -> None:
        """Adds a row; rows come in order."""
        for (low, mask), found in zip(self._blocks, self._found, strict=True):
            found.setdefault(value >> low & mask, []).append((value, row))


def simhashes(sets: Shingles) -> np.ndarray:
    """For each text the majority of each of 64 bits over its hashes, 0 where it is even."""
    ones = np.zeros((len(sets.ends) - 1, _BITS), np.int64)
    for text, (begin, end) in enumerate(pairwise(sets.ends.tolist())):
        bits = np.unpackbits(sets.hashes[begin:end].view(np.uint8).reshape(-1, _BITS // 8), axis=1)
        ones[text] = bits.sum(axis=0, dtype=np.int64)
    most = 2 * ones > np.diff(sets.ends)[:, None]
    return np.packbits(most, axis=1).view(np.uint64)[:, 0]
