"""Keeps the first rows of each group, over all batches: what quotas and exact samples share."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from dataflow_assets.batch import Schema, arrow_schema, column_of
from dataflow_assets.operators.operator import DatasetOperator, Outcome, Summaries
from dataflow_assets.operators.table_rows import labels_of, without_rows

_VERDICT: Schema = {"row": "int64"}


class RankingOperator(DatasetOperator):
    """Ranks the rows of each group and keeps the first of them.

    Rows of equal rank are taken in the order of the partitions. Deciding holds about 40 bytes a row.
    """

    drop_reason: str = "not_chosen"

    @property
    @abstractmethod
    def group_column(self) -> str | None:
        """The column whose values are the groups; None for one group of all rows."""

    @abstractmethod
    def ranks(self, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        """A number for each row, int64 or float64; the least are kept, null comes last."""

    @abstractmethod
    def allowed(self, groups: Sequence[str | None], counts: np.ndarray) -> np.ndarray:
        """How many rows of each group stay, of as many as there are."""

    def reads(self) -> list[str]:
        """The column of the groups."""
        return [self.group_column] if self.group_column else []

    def summarize(self, table: pa.Table) -> pa.Table:
        """The group and the rank of each row."""
        name = self.group_column
        groups = labels_of(table, name) if name else [None] * table.num_rows
        ranks = self.ranks(table)
        kind = "float64" if pa.types.is_floating(ranks.type) else "int64"
        schema: Schema = {"group": "string", "rank": kind}
        return pa.Table.from_arrays([column_of(groups, "string"), ranks], schema=arrow_schema(schema))

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """The rows of each batch that go."""
        codes: dict[str | None, int] = {}
        batches: list[tuple[str, int]] = []
        group_parts, rank_parts, last_parts = [], [], []
        for key, summary in summaries:
            batches.append((key, summary.num_rows))
            names = summary["group"].to_pylist()
            group_parts.append(
                np.fromiter((codes.setdefault(name, len(codes)) for name in names), np.int32, len(names))
            )
            rank_parts.append(summary["rank"].fill_null(0).to_numpy())
            last_parts.append(summary["rank"].is_null().to_numpy())
        dropped = self._dropped(list(codes), *map(_joined, (group_parts, rank_parts, last_parts)))
        begin = 0
        for key, rows in batches:
            mine = dropped[slice(*np.searchsorted(dropped, (begin, begin + rows)))] - begin
            yield key, pa.Table.from_arrays([pa.array(mine, pa.int64())], schema=arrow_schema(_VERDICT))
            begin += rows

    def _dropped(
        self, names: Sequence[str | None], groups: np.ndarray, ranks: np.ndarray, last: np.ndarray
    ) -> np.ndarray:
        """The ordinals of the rows that go, ascending."""
        counts = np.bincount(groups.astype(np.int64), minlength=len(names))
        allowed = np.asarray(self.allowed(names, counts), np.int64)
        order = np.lexsort((ranks, last, groups))  # stable: equal rows keep their order
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        sorted_groups = groups[order]
        places = np.arange(len(order)) - starts[sorted_groups]
        return np.sort(order[places >= allowed[sorted_groups]])

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Keeps the rows that the verdict does not name."""
        return without_rows(table, verdict["row"].to_numpy(), self.drop_reason)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    whole = np.concatenate(parts) if parts else np.empty(0, np.int64)
    parts.clear()
    return whole
