"""Keeps the first rows of the whole data set."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pydantic import Field

from dataflow_assets.batch import Schema, table_of
from dataflow_assets.operators.operator import DatasetOperator, Outcome, Params, Summaries
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import without_rows

_SUMMARY: Schema = {"rows": "int64"}
_VERDICT: Schema = {"begin": "int64", "end": "int64"}


class _LimitParams(Params):
    rows: int = Field(ge=0, description="The most rows that stay.")
    skip: int = Field(0, ge=0, description="The first rows that go.")


@register
class Limit(DatasetOperator):
    """Keeps the first rows of the whole data set, in the order of the partitions.

    Grain: one row in, at most one out; order, ids and values unchanged. Scope: the whole data set, so
    that the rows are the same for every batch size. Reads nothing. Rejected rows have the reason
    `outside_limit`. Raises nothing on rows. Deciding holds a number for each batch.

    Example:
        - {name: first_thousand, type: limit, params: {rows: 1000}}
    """

    name = "limit"
    Params = _LimitParams
    params: _LimitParams

    def summarize(self, table: pa.Table) -> pa.Table:
        """How many rows there are."""
        return table_of({"rows": [table.num_rows]}, _SUMMARY)

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """For each batch, the first row that stays and the one after the last."""
        first, before = self.params.skip, 0
        for key, summary in summaries:
            rows = summary["rows"][0].as_py()
            begin = min(max(first - before, 0), rows)
            end = min(max(first + self.params.rows - before, 0), rows)
            yield key, table_of({"begin": [begin], "end": [end]}, _VERDICT)
            before += rows

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Keeps the rows between them."""
        begin, end = verdict["begin"][0].as_py(), verdict["end"][0].as_py()
        outside = np.concatenate([np.arange(begin), np.arange(end, table.num_rows)])
        return without_rows(table, outside, "outside_limit")
