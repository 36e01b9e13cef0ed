"""Drops rows that mean nearly the same as an earlier row, over all batches."""

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import Field

from dataflow_assets.operators.models.vectors import Dropped, VectorOperator, VectorParams, Vectors, cosine
from dataflow_assets.operators.registry import register

_ROWS_AT_ONCE = 512
_COMPARED_AT_ONCE = 16384
_ROUNDING = 1e-9
_ROUNDING_OF_A_STEP = 2.4e-7


class _DropSemanticDuplicatesParams(VectorParams):
    threshold: float = Field(
        0.95, gt=0.0, le=1.0, description="Cosine of the angle from which on two rows are duplicates."
    )


@register
class DropSemanticDuplicates(VectorOperator):
    """Drops every row whose vector is close to that of an earlier row which stayed, over all batches.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (JSON list of
    numbers, of `embed_text` or `embed`); its length does not matter, only its direction. Scope: the
    whole data set; rows are gone through in the order of the partitions, and one goes where its cosine
    with a row that stayed is at least `threshold`: so the result is the same for every batch size, and
    no two rows that stay are duplicates. Exact: every pair is compared. Rejected rows have the reason
    `semantic_duplicate`, in `duplicate_of` the `row_id` of the first such row, and their cosine in
    `similarity`. A null fails its row as MissingValue; what is no list of finite numbers, or only of
    zeros, as WrongType. Raises RunError where the vectors have different lengths. Source of the rule:
    SemDeDup (Abbas et al. 2023), without its clusters.

    Deciding holds 4 to 10 bytes for each dimension of each row that stays (384 dimensions: 1.5 to 4 kB
    a row), the step's state 5.4 bytes on disk, and n rows of which m stay take n * m / 2 products of
    vectors: 100,000 rows of 384 dimensions about 80 CPU-seconds, a million 2.3 hours; then
    take less rows, or `drop_near_duplicates`.

    Example:
        - {name: unlike, type: drop_semantic_duplicates, params: {column: embedding, threshold: 0.9}}
    """

    name = "drop_semantic_duplicates"
    reason = "semantic_duplicate"
    other_column = "duplicate_of"
    Params = _DropSemanticDuplicatesParams
    params: _DropSemanticDuplicatesParams

    def dropped(self, batches: Iterable[Vectors], rows: int) -> Sequence[Dropped]:
        """The rows that are close to one that stays."""
        staying = _Staying(self.params.threshold)
        found: list[Dropped] = []
        for batch in batches:
            for begin in range(0, len(batch.ordinals), _ROWS_AT_ONCE):
                part = slice(begin, begin + _ROWS_AT_ONCE)
                found += staying.compared(batch.ordinals[part], batch.lines[part])
        return found


class _Staying:
    """The vectors of the rows that stay so far, in order.

    Candidates come from products of matrices in 32 bits, which round differently by their shape; each
    is then computed by itself, so that no shape decides.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold - _ROUNDING
        self._ordinals: list[int] = []
        self._lines = np.empty((0, 0), np.float32)

    def compared(self, ordinals: np.ndarray, lines: np.ndarray) -> list[Dropped]:
        """The rows that go; the others stay from now on."""
        known = len(self._ordinals)
        self._make_room(known + len(lines), lines.shape[1])
        near = self._near(lines, known)
        within = lines @ lines.T >= self._least(lines)
        places: list[int] = []
        found: list[Dropped] = []
        for place, ordinal in enumerate(ordinals.tolist()):
            here = [known + rank for rank, earlier in enumerate(places) if within[place, earlier]]
            twin = self._first([*near.get(place, ()), *here], lines[place])
            if twin is None:
                self._lines[len(self._ordinals)] = lines[place]
                self._ordinals.append(ordinal)
                places.append(place)
            else:
                found.append(Dropped(ordinal, *twin))
        return found

    def _near(self, lines: np.ndarray, known: int) -> dict[int, list[int]]:
        """For each line that has any the candidates among the first `known` rows that stay, ascending."""
        least = self._least(lines)
        near: dict[int, list[int]] = {}
        for begin in range(0, known, _COMPARED_AT_ONCE):
            end = min(begin + _COMPARED_AT_ONCE, known)
            for place, staying in np.argwhere(lines @ self._lines[begin:end].T >= least).tolist():
                near.setdefault(place, []).append(begin + staying)
        return near

    def _least(self, lines: np.ndarray) -> float:
        return self._threshold - lines.shape[1] * _ROUNDING_OF_A_STEP

    def _first(self, candidates: Sequence[int], line: np.ndarray) -> tuple[int, float] | None:
        """The first candidate that is as close as is asked for, and how close."""
        for candidate in candidates:
            similarity = cosine(self._lines[candidate], line)
            if similarity >= self._threshold:
                return self._ordinals[candidate], similarity
        return None

    def _make_room(self, rows: int, dimensions: int) -> None:
        if rows > len(self._lines):
            larger = np.empty((max(rows, len(self._lines) * 3 // 2), dimensions), np.float32)
            larger[: len(self._ordinals)] = self._lines[: len(self._ordinals)].reshape(-1, dimensions)
            self._lines = larger
