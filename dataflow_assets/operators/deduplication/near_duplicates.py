"""Drops rows whose text is nearly that of an earlier row: MinHash LSH, candidates verified."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import xxhash
from pydantic import Field

from dataflow_assets.operators.deduplication.buckets import KeptRows, shared_buckets
from dataflow_assets.operators.deduplication.minhash import algorithm, band_keys
from dataflow_assets.operators.deduplication.scratch_texts import ScratchTexts
from dataflow_assets.operators.deduplication.shingles import (
    Unit,
    packages_for,
    shingles,
    units_texts,
)
from dataflow_assets.operators.deduplication.simplified_text import normalized
from dataflow_assets.operators.deduplication.text_duplicates import TextDuplicatesOperator
from dataflow_assets.operators.deduplication.verdicts import (
    Repeats,
    concatenated,
    numbers,
    repeats_of_equal,
)
from dataflow_assets.operators.operator import ColumnParams, Summaries
from dataflow_assets.operators.registry import register

_HASHES = ("hash_high", "hash_low")
_UNITS = "units"
_HASHED_AT_ONCE = 512  # texts
_WHOLE = 1  # the seed of texts that are compared whole


class _NearDuplicatesParams(ColumnParams):
    unit: Unit = Field(
        "words",
        description="What an n-gram is made of: `words` (Chinese is cut into words first) or `characters`.",
    )
    n: int = Field(5, ge=1, le=100, description="The units in an n-gram.")
    threshold: float = Field(
        0.8, gt=0, le=1, description="The Jaccard similarity of two sets of n-grams from which a row goes."
    )
    bands: int = Field(14, ge=1, le=256, description="The bands of a signature; more find more candidates.")
    rows: int = Field(8, ge=1, le=64, description="The hashes in a band; more leave more candidates out.")
    seed: int = Field(1, ge=0, lt=2**63, description="What the hash functions are drawn by.")


@register
class DropNearDuplicates(TextDuplicatesOperator):
    """Drops every row whose text is nearly that of an earlier row that stays, over all batches.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Scope: the whole data set; the result depends on the order of the rows alone.

    Texts are compared by the Jaccard similarity s of their sets of n-grams, after simplification:
    lower case, each number 0, punctuation a space, accents off. Candidates are found by MinHash with
    `bands` x `rows` hashes, with the probability 1 - (1 - s^rows)^bands: .77 at s = .75, .924 at .80,
    .9996 at .90. Each candidate is verified: a row goes where its true similarity to an earlier row
    that stays is at least `threshold`, so no row goes because of a chain of others. Rejected rows have
    the reason `near_duplicate`, the `row_id` of the first such row in `duplicate_of`, and the
    `similarity`. Of the rows that stay in one bucket of a band, a row is compared with the latest 100.

    A text of fewer than `n` units is compared whole: it goes where an earlier one is the same but
    for white space. A text without any character but white space repeats nothing and stays. In `words`,
    a text with a share of Han characters from .2 on is cut by rjieba. Needs the extra `dedup`.
    Raises ConfigError without it, and where the input has a column `duplicate_of` or `similarity`.

    Deciding holds about 350 bytes a row, and puts the texts of candidates aside in a temporary file;
    the step's state holds each text once more.
    Source: Broder 1997; the defaults are those of FineWeb (Penedo et al. 2024, appendix D).

    Example:
        - {name: distinct, type: drop_near_duplicates, params: {column: text, threshold: 0.8}}
    """

    name = "drop_near_duplicates"
    Params = _NearDuplicatesParams
    params: _NearDuplicatesParams
    rejects_for = "near_duplicate"

    def needed_packages(self) -> Mapping[str, str]:
        """What makes signatures, and cuts Chinese into words."""
        return {"rensa": "dedup", **packages_for(self.params.unit)}

    def identity(self) -> Mapping[str, object]:
        """The version of the hash functions."""
        return {"minhash": algorithm()}

    def fingerprints(self, texts: list[str]) -> pa.Table:
        """The hash of each text, its bands, and the text that its n-grams are made of."""
        params = self.params
        units = units_texts(texts, params.unit)
        long = np.zeros(len(texts), bool)
        keys = np.zeros((len(texts), params.bands), np.int64)
        for begin in range(0, len(texts), _HASHED_AT_ONCE):
            part = slice(begin, begin + _HASHED_AT_ONCE)
            sets = shingles(units[part], params.unit, params.n)
            long[part] = np.diff(sets.ends) > 0
            keys[part] = band_keys(sets, params.bands, params.rows, params.seed)
        hashes, present = _hashes(texts, units, long)
        columns = {name: pa.array(hashes[:, half], mask=~present) for half, name in enumerate(_HASHES)}
        columns |= {name: pa.array(keys[:, band], mask=~long) for band, name in enumerate(self._bands())}
        kept = [text if is_long else None for text, is_long in zip(units, long.tolist(), strict=True)]
        columns[_UNITS] = pa.array(kept, pa.large_string())
        return pa.table(columns)

    def repeats(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats]:
        """The rows that go, equal ones with the row that they equal."""
        batches, equal, buckets = self._candidates(summaries)
        originals = np.arange(len(buckets))
        similarities = np.ones(len(buckets))
        for row, original, similarity in self._near(summaries, buckets):
            originals[row], similarities[row] = original, similarity
        # What equals a row has its n-grams and its bands, so it goes with it and for the same reason.
        similarities[equal.rows] = similarities[equal.firsts]
        gone = originals[equal.firsts]
        originals[equal.rows] = gone
        rows = np.flatnonzero(originals != np.arange(len(originals)))
        return batches, Repeats(rows, originals[rows], similarities[rows])

    def _bands(self) -> list[str]:
        return [f"band_{band}" for band in range(self.params.bands)]

    def _candidates(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats, np.ndarray]:
        """The batches, the rows that equal an earlier one, and the buckets of all others."""
        batches: list[tuple[str, int]] = []
        columns: dict[str, list[np.ndarray]] = {name: [] for name in (*_HASHES, *self._bands())}
        present: list[np.ndarray] = []
        long: list[np.ndarray] = []
        for key, summary in summaries:
            batches.append((key, summary.num_rows))
            for name, parts in columns.items():
                parts.append(numbers(summary[name]))
            present.append(summary["hash_low"].is_valid().to_numpy())
            long.append(summary[_UNITS].is_valid().to_numpy())
        high, low = (concatenated(columns[name], np.int64) for name in _HASHES)
        equal = repeats_of_equal(high, low, concatenated(present, bool))
        del high, low
        compared = concatenated(long, bool)
        compared[equal.rows] = False
        keys = (concatenated(columns[name], np.int64) for name in self._bands())
        return batches, equal, shared_buckets(keys, self.params.bands, compared)

    def _near(self, summaries: Summaries, buckets: np.ndarray) -> Iterator[tuple[int, int, float]]:
        """Each row that goes, the first row that stays and is similar enough, and their similarity."""
        candidates = np.flatnonzero((buckets >= 0).any(axis=1))
        kept = KeptRows(buckets[candidates])
        with ScratchTexts(self._shingle_sets) as sets:
            for text in _texts_at(summaries, candidates):
                sets.append(text)
            for place, row in enumerate(candidates.tolist()):
                found = self._first_similar(sets, place, kept.sharing(place))
                if found is None:
                    kept.keep(place)
                else:
                    yield row, int(candidates[found[0]]), found[1]

    def _first_similar(
        self, sets: ScratchTexts, place: int, others: Sequence[int]
    ) -> tuple[int, float] | None:
        for other in dict.fromkeys(others):
            similarity = jaccard(sets[place], sets[other], self.params.threshold)
            if similarity >= self.params.threshold:
                return other, similarity
        return None

    def _shingle_sets(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        found = shingles(texts, self.params.unit, self.params.n)
        for begin, end in pairwise(found.ends.tolist()):
            hashes = np.sort(found.hashes[begin:end])
            yield hashes[np.append(True, hashes[1:] != hashes[:-1])]


def jaccard(first: np.ndarray, second: np.ndarray, at_least: float = 0.0) -> float:
    """The similarity of two sets in ascending order; 0 where their sizes alone keep it below `at_least`."""
    smaller, larger = sorted((len(first), len(second)))
    if smaller < at_least * larger:
        return 0.0
    union = np.sort(np.concatenate([first, second]))
    both = int(np.count_nonzero(union[1:] == union[:-1]))
    return both / (smaller + larger - both)


def _hashes(texts: Sequence[str], units: Sequence[str], long: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two halves of the hash by which texts are equal, and which texts have one."""
    digests: list[bytes] = []
    for text, unit_text, is_long in zip(texts, units, long.tolist(), strict=True):
        if is_long:
            digests.append(xxhash.xxh3_128_digest(unit_text.encode()))
        else:
            whole = normalized(text).encode()
            digests.append(xxhash.xxh3_128_digest(whole, _WHOLE) if whole else b"")
    present = np.array([bool(digest) for digest in digests], bool)
    data = b"".join(digest or bytes(16) for digest in digests)
    return np.frombuffer(data, ">i8").reshape(-1, 2).astype(np.int64), present


def _texts_at(summaries: Summaries, rows: np.ndarray) -> Iterator[str]:
    """The texts of the rows with these ordinals, which ascend."""
    begin = 0
    for _, summary in summaries:
        end = begin + summary.num_rows
        here = rows[slice(*np.searchsorted(rows, (begin, end)))] - begin
        yield from summary[_UNITS].take(pa.array(here)).to_pylist()
        begin = end
