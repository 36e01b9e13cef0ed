"""Drops rows that share whole pieces of their text with an earlier one."""

from collections import Counter

import numpy as np
import pyarrow as pa
import xxhash
from pydantic import Field, model_validator

from dataflow_assets.operators.deduplication.buckets import KeptRows, shared_buckets
from dataflow_assets.operators.deduplication.text_duplicates import TextDuplicatesOperator
from dataflow_assets.operators.deduplication.verdicts import Repeats, concatenated, numbers, repeats_of_equal
from dataflow_assets.operators.operator import ColumnParams, Summaries
from dataflow_assets.operators.registry import register

_WHOLE = ("hash_high", "hash_low")


class _NgramDuplicatesParams(ColumnParams):
    pieces: int = Field(3, ge=1, le=100, description="Into how many equal pieces a text is cut.")
    min_shared: int = Field(1, ge=1, description="How many pieces two duplicates have in common.")

    @model_validator(mode="after")
    def _can_be_shared(self) -> "_NgramDuplicatesParams":
        if self.min_shared > self.pieces:
            raise ValueError(f"min_shared {self.min_shared} is above pieces {self.pieces}: no row could go")
        return self


@register
class DropNgramDuplicates(TextDuplicatesOperator):
    """Drops every row that has pieces of its text in common with an earlier row that stays.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string).
    Scope: the whole data set; the result depends on the order of the rows alone. Each text is cut into
    `pieces` equal pieces of characters; what is left over at its end counts for nothing. Two texts with
    at least `min_shared` equal pieces, in any place, are duplicates: a change of length in front moves
    all pieces, so this finds texts with changed words of the same length and copied heads alone. A piece
    that a text repeats counts once, one of white space alone not at all, and a text shorter than `pieces`
    is one piece. Equal texts that are not blank are always duplicates, with the similarity 1; they stay or
    go together. Of the rows that stay and have one piece, a row is compared with the latest 100. Rejected
    rows have the reason `ngram_duplicate`, the `row_id` of the first such row in `duplicate_of`, and the
    share of the pieces as `similarity`. Raises ConfigError where the input has a column of these names.

    Deciding holds about 30 bytes a row and piece, and 60 a row.
    Source: the n-gram hash filter of open-dataflow 1.0.13, where texts shorter than `pieces` are all equal
    and equal texts stay whose pieces repeat.

    Example:
        - {name: distinct, type: drop_ngram_duplicates, params: {column: text, pieces: 3, min_shared: 2}}
    """

    name = "drop_ngram_duplicates"
    version = "2"
    Params = _NgramDuplicatesParams
    params: _NgramDuplicatesParams
    rejects_for = "ngram_duplicate"

    def fingerprints(self, texts: list[str]) -> pa.Table:
        """The hashes of the pieces of each text and of the whole; null where there is none, or a blank."""
        hashes = [self._hashes(text) for text in texts]
        pieces = {name: [row[place] for row in hashes] for place, name in enumerate(self._names())}
        digests = [xxhash.xxh3_128_intdigest(text.encode()) if text.strip() else None for text in texts]
        halves = [None if digest is None else divmod(digest, 1 << 64) for digest in digests]
        whole = {
            name: [None if half is None else _signed(half[place]) for half in halves]
            for place, name in enumerate(_WHOLE)
        }
        columns = {**pieces, **whole}
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})

    def repeats(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats]:
        """Goes over the rows in order, comparing each with those that stay and share a piece."""
        batches, equal, buckets = self._read(summaries)
        equal_to = np.full(len(buckets), -1)
        equal_to[equal.rows] = equal.firsts
        kept = KeptRows(buckets)
        firsts, similarities = np.full(len(buckets), -1), np.ones(len(buckets))
        for row in np.flatnonzero((buckets >= 0).any(axis=1) | (equal_to >= 0)).tolist():
            earlier = int(equal_to[row])
            if earlier >= 0:  # what became of the equal text becomes of this one
                firsts[row] = earlier if firsts[earlier] < 0 else firsts[earlier]
                similarities[row] = similarities[earlier]
                continue
            shared = Counter(kept.sharing(row))
            first = next((other for other, count in shared.items() if count >= self.params.min_shared), None)
            if first is None:
                kept.keep(row)
            else:
                firsts[row], similarities[row] = first, shared[first] / self.params.pieces
        rows = np.flatnonzero(firsts >= 0)
        return batches, Repeats(rows, firsts[rows], similarities[rows])

    def _read(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats, np.ndarray]:
        """The batches, the rows whose text an earlier row has, and the buckets of all pieces."""
        batches: list[tuple[str, int]] = []
        hashes: list[np.ndarray] = []
        present: list[np.ndarray] = []
        whole: dict[str, list[np.ndarray]] = {name: [] for name in _WHOLE}
        has_text: list[np.ndarray] = []
        for key, summary in summaries:
            batches.append((key, summary.num_rows))
            columns = [summary[name] for name in self._names()]
            hashes.append(np.stack([numbers(column) for column in columns], 1).ravel())
            present.append(np.stack([column.is_valid().to_numpy() for column in columns], 1).ravel())
            for name, parts in whole.items():
                parts.append(numbers(summary[name]))
            has_text.append(summary[_WHOLE[0]].is_valid().to_numpy())
        high, low = (concatenated(whole[name], np.int64) for name in _WHOLE)
        equal = repeats_of_equal(high, low, concatenated(has_text, bool))
        del high, low
        keys = (concatenated(hashes, np.int64) for _ in range(1))
        buckets = shared_buckets(keys, 1, concatenated(present, bool)).reshape(-1, self.params.pieces)
        return batches, equal, buckets

    def _names(self) -> list[str]:
        return [f"piece_{place}" for place in range(self.params.pieces)]

    def _hashes(self, text: str) -> list[int | None]:
        length = len(text) // self.params.pieces
        starts = range(0, length * self.params.pieces, length) if length else ()
        pieces = [text[start : start + length] for start in starts] or [text]
        hashes = [
            _signed(xxhash.xxh3_64_intdigest(piece.encode())) if piece.strip() else None for piece in pieces
        ]
        return hashes + [None] * (self.params.pieces - len(hashes))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
