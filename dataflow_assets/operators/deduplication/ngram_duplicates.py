"""Drops rows that share whole pieces of their text with an earlier one."""

from collections import Counter

import numpy as np
import pyarrow as pa
import xxhash
from pydantic import Field, model_validator

from dataflow_assets.operators.deduplication.buckets import KeptRows, shared_buckets
from dataflow_assets.operators.deduplication.text_duplicates import TextDuplicatesOperator
from dataflow_assets.operators.deduplication.verdicts import Repeats, concatenated, numbers
from dataflow_assets.operators.operator import ColumnParams, Summaries
from dataflow_assets.operators.registry import register


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
    all pieces, so this finds texts with changed words of the same length and copied heads alone. A text
    shorter than `pieces` is one piece; a piece of white space alone counts for nothing. Of the rows that
    stay and have one piece, a row is compared with the latest 100. Rejected rows have the reason
    `ngram_duplicate`, the `row_id` of the first such row in `duplicate_of`, and the share of the
    pieces as `similarity`. Raises ConfigError where the input has a column of these names.

    Deciding holds about 30 bytes a row and piece.
    Source: the n-gram hash filter of open-dataflow 1.0.13, where texts shorter than `pieces` are all equal.

    Example:
        - {name: distinct, type: drop_ngram_duplicates, params: {column: text, pieces: 3, min_shared: 2}}
    """

    name = "drop_ngram_duplicates"
    Params = _NgramDuplicatesParams
    params: _NgramDuplicatesParams
    rejects_for = "ngram_duplicate"

    def fingerprints(self, texts: list[str]) -> pa.Table:
        """The hashes of the pieces of each text, null where there is none."""
        hashes = [self._hashes(text) for text in texts]
        return pa.table(
            {
                name: pa.array([row[place] for row in hashes], pa.int64())
                for place, name in enumerate(self._names())
            }
        )

    def repeats(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats]:
        """Goes over the rows in order, comparing each with those that stay and share a piece."""
        batches: list[tuple[str, int]] = []
        hashes: list[np.ndarray] = []
        present: list[np.ndarray] = []
        for key, summary in summaries:
            batches.append((key, summary.num_rows))
            columns = [summary[name] for name in self._names()]
            hashes.append(np.stack([numbers(column) for column in columns], 1).ravel())
            present.append(np.stack([column.is_valid().to_numpy() for column in columns], 1).ravel())
        keys = (concatenated(hashes, np.int64) for _ in range(1))
        buckets = shared_buckets(keys, 1, concatenated(present, bool)).reshape(-1, self.params.pieces)
        kept = KeptRows(buckets)
        found: list[tuple[int, int, float]] = []
        for row in np.flatnonzero((buckets >= 0).any(axis=1)).tolist():
            shared = Counter(kept.sharing(row))
            first = next((other for other, count in shared.items() if count >= self.params.min_shared), None)
            if first is None:
                kept.keep(row)
            else:
                found.append((row, first, shared[first] / self.params.pieces))
        rows, firsts, similarities = zip(*found, strict=True) if found else ((), (), ())
        return batches, Repeats(
            np.array(rows, np.int64), np.array(firsts, np.int64), np.array(similarities, float)
        )

    def _names(self) -> list[str]:
        return [f"piece_{place}" for place in range(self.params.pieces)]

    def _hashes(self, text: str) -> list[int | None]:
        length = len(text) // self.params.pieces
        starts = range(0, length * self.params.pieces, length) if length else ()
        pieces = [text[start : start + length] for start in starts] or [text]
        hashes = [_signed_hash(piece) if piece.strip() else None for piece in pieces]
        return hashes + [None] * (self.params.pieces - len(hashes))


def _signed_hash(text: str) -> int:
    value = xxhash.xxh3_64_intdigest(text.encode())
    return value - (1 << 64) if value >> 63 else value
