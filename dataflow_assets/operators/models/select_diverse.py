"""Chooses rows that are as unlike each other as possible, over all batches."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from pydantic import Field, model_validator

from dataflow_assets.operators.models.vectors import Dropped, VectorOperator, VectorParams, Vectors, cosine
from dataflow_assets.operators.registry import register


class _SelectDiverseParams(VectorParams):
    rows: int | None = Field(None, ge=1, description="How many rows stay.")
    share: float | None = Field(None, gt=0.0, le=1.0, description="Or which share of all rows.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "_SelectDiverseParams":
        if (self.rows is None) == (self.share is None):
            raise ValueError("give rows or share, one of both")
        return self


@register
class SelectDiverse(VectorOperator):
    """Keeps so many rows that every other row is close to one of them: k-center, greedy, over all batches.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (JSON list of
    numbers, of `embed_text` or `embed`). Scope: the whole data set; the first row in the order of the
    partitions is chosen, then again and again the row that is farthest (by angle) from all chosen ones,
    of equal ones the first, until there are `rows` of them (or `share` of all rows, rounded up). The
    result is the same for every batch size. Rejected rows have the reason `not_selected`, in `nearest`
    the `row_id` of the chosen row that is closest, and its cosine in `similarity`. A null fails its row
    as MissingValue; what is no list of finite numbers, or only of zeros, as WrongType. Raises RunError
    where the vectors have different lengths. An odd text is far from all others, so it is chosen early:
    filter for quality first. Source of the rule: Sener and Savarese 2018; no choice is farther from
    the others than twice the best one possible.

    Deciding holds 4 bytes for each dimension of each row (384 dimensions: 1.5 kB a row), the step's
    state 5.4 bytes on disk, and takes as many products of vectors as all rows times those that stay:
    1,000 of 100,000 rows of 384 dimensions about 20 CPU-seconds.

    Example:
        - {name: diverse, type: select_diverse, params: {column: embedding, rows: 1000}}
    """

    name = "select_diverse"
    reason = "not_selected"
    other_column = "nearest"
    Params = _SelectDiverseParams
    params: _SelectDiverseParams

    def dropped(self, batches: Iterable[Vectors], rows: int) -> Sequence[Dropped]:
        """The rows that are not chosen."""
        ordinals, lines = _together(batches, rows)
        share = self.params.share
        wanted = self.params.rows if share is None else -int(-Fraction(str(share)) * rows // 1)
        assert wanted is not None
        return list(_others(ordinals, lines, min(wanted, len(ordinals))))


def _together(batches: Iterable[Vectors], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """All vectors as one matrix, made once."""
    ordinals, lines = np.empty(rows, np.int64), np.empty((0, 0), np.float32)
    count = 0
    for batch in batches:
        if not len(lines):
            lines = np.empty((rows, batch.lines.shape[1]), np.float32)
        end = count + len(batch.ordinals)
        ordinals[count:end], lines[count:end] = batch
        count = end
    return ordinals[:count], lines[:count]


def _others(ordinals: np.ndarray, lines: np.ndarray, wanted: int) -> Iterator[Dropped]:
    """The rows that are not among the `wanted` centers."""
    closest = np.full(len(lines), -np.inf, np.float32)
    center = np.zeros(len(lines), np.int64)
    is_chosen = np.zeros(len(lines), bool)
    chosen = 0
    for _ in range(wanted):
        is_chosen[chosen] = True
        similarities = lines @ lines[chosen]
        closer = similarities > closest
        closest[closer], center[closer] = similarities[closer], chosen
        chosen = int(np.argmin(np.where(is_chosen, np.inf, closest)))
    for place in np.flatnonzero(~is_chosen).tolist():
        nearest = int(center[place])
        yield Dropped(int(ordinals[place]), int(ordinals[nearest]), cosine(lines[place], lines[nearest]))
