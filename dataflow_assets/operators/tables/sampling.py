"""Keeps a random part of the rows: a share of them, or a number."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from dataflow_assets.batch import ROW_ID
from dataflow_assets.operators.operator import Outcome, Params, RowOperator
from dataflow_assets.operators.ranking import RankingOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.row_hashes import row_hashes
from dataflow_assets.operators.table_rows import labels_of, without_rows

_HASH_BITS = 53  # as many as a float holds exactly


class _SampleParams(Params):
    share: float = Field(ge=0, le=1, description="The share of the rows that stays, in expectation.")
    by: str | None = Field(None, min_length=1, description="A column whose values have shares of their own.")
    shares: dict[str, float] = Field(
        default_factory=dict, description="The share of a value of `by`; of all others it is `share`."
    )
    seed: int = Field(0, description="Another seed gives another sample.")

    @model_validator(mode="after")
    def _shares_are_shares(self) -> "_SampleParams":
        if self.shares and self.by is None:
            raise ValueError("shares needs `by`, the column whose values they name")
        if wrong := [name for name, share in self.shares.items() if not 0 <= share <= 1]:
            raise ValueError(f"a share is from 0 to 1; wrong: {', '.join(wrong)}")
        return self


@register
class Sample(RowOperator):
    """Keeps a random share of the rows, for each value of a column another if you like.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `by` (any type; a number
    or a null is named as JSON writes it). A row stays where a hash of `seed` and its `row_id` is below
    the share, so the sample is the same for every batch size, stays as rows are added, and a smaller
    share is part of a greater one. The number of rows varies: by about the square root of it. For an
    exact number there is `sample_rows`. Rejected rows have the reason `not_sampled`. Raises nothing on
    rows.

    Example:
        - {name: tenth, type: sample, params: {share: 0.1, by: language, shares: {zh: 0.5}, seed: 7}}
    """

    name = "sample"
    Params = _SampleParams
    params: _SampleParams

    def reads(self) -> list[str]:
        """The column with shares of its own."""
        return [self.params.by] if self.params.by else []

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps the rows whose hash is small enough."""
        hashes = (row_hashes(table[ROW_ID], self.params.seed) >> (64 - _HASH_BITS)) / 2.0**_HASH_BITS
        return without_rows(table, np.flatnonzero(hashes >= self._shares(table)), "not_sampled")

    def _shares(self, table: pa.Table) -> np.ndarray | float:
        if self.params.by is None:
            return self.params.share
        shares = self.params.shares
        labels = ("null" if label is None else label for label in labels_of(table, self.params.by))
        return np.array([shares.get(label, self.params.share) for label in labels])


class _SampleRowsParams(Params):
    rows: int = Field(ge=0, description="How many rows stay; all of them where there are fewer.")
    by: str | None = Field(None, min_length=1, description="A column whose values are the strata.")
    allocation: Literal["proportional", "equal"] = Field(
        "proportional",
        description="With `by`: each stratum's share as in the data, or the same number of each.",
    )
    seed: int = Field(0, description="Another seed gives another sample.")


@register
class SampleRows(RankingOperator):
    """Keeps a random sample of exactly so many rows of the whole data set, stratified if you like.

    Grain: one row in, at most one out; order, ids and values unchanged. Scope: the whole data set; the
    sample is the same for every batch size. Reads `by` (any type; null is a stratum too). The rows with
    the smallest hashes of `seed` and `row_id` stay. Strata get their parts by the largest remainder
    (`proportional`), or the same number each, which small ones leave to the others (`equal`); of equal
    claims the stratum that came first goes before. Rejected rows have the reason `not_sampled`. Raises
    nothing on rows. Deciding holds about 40 bytes a row.

    Example:
        - {name: to_look_at, type: sample_rows, params: {rows: 500, by: language, allocation: equal}}
    """

    name = "sample_rows"
    drop_reason = "not_sampled"
    Params = _SampleRowsParams
    params: _SampleRowsParams

    @property
    def group_column(self) -> str | None:
        """The column of the strata."""
        return self.params.by

    def ranks(self, table: pa.Table) -> pa.Array:
        """The hash of the row."""
        return pa.array(row_hashes(table[ROW_ID], self.params.seed).view(np.int64))

    def allowed(self, groups: Sequence[str | None], counts: np.ndarray) -> np.ndarray:
        """The parts of the strata."""
        rows = min(self.params.rows, int(counts.sum()))
        return _equal(counts, rows) if self.params.allocation == "equal" else _proportional(counts, rows)


def _proportional(counts: np.ndarray, rows: int) -> np.ndarray:
    """The rows shared out by the largest remainder, in whole numbers, so that no rounding decides."""
    total = int(counts.sum())
    if not total:
        return counts
    parts = [divmod(rows * int(count), total) for count in counts]
    given = np.array([whole for whole, _ in parts], np.int64)
    by_remainder = sorted(range(len(parts)), key=lambda stratum: -parts[stratum][1])
    given[by_remainder[: rows - int(given.sum())]] += 1
    return given


def _equal(counts: np.ndarray, rows: int) -> np.ndarray:
    """The same number for each stratum; what small ones lack goes to the others."""
    given = np.zeros(len(counts), np.int64)
    while (left := rows - int(given.sum())) > 0:
        unfilled = np.flatnonzero(given < counts)
        each = left // len(unfilled)
        if not each:
            given[unfilled[:left]] += 1
            break
        given[unfilled] = np.minimum(given[unfilled] + each, counts[unfilled])
    return given
