"""What operators share that drop rows whose text repeats an earlier one, over all batches."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, Schema, arrow_field
from dataflow_assets.operators.deduplication.verdicts import (
    DUPLICATE_OF,
    SIMILARITY,
    Repeats,
    apply_verdict,
    refuse_columns,
    verdicts,
)
from dataflow_assets.operators.operator import (
    DatasetOperator,
    Outcome,
    Summaries,
    TextColumnOperator,
)


class TextDuplicatesOperator(DatasetOperator, TextColumnOperator):
    """Drops rows by what `fingerprints` says of their texts; the first in order stays.

    A row without a usable text has null in every column of the summary and repeats nothing.
    """

    scope = "dataset"
    rejects_for: ClassVar[str]

    @abstractmethod
    def fingerprints(self, texts: list[str]) -> pa.Table:
        """One row for each text: what `repeats` must know of it."""

    @abstractmethod
    def repeats(self, summaries: Summaries) -> tuple[list[tuple[str, int]], Repeats]:
        """The keys and row counts of the batches, and the rows that go."""

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError if a column beside the rejected rows is one of them."""
        refuse_columns(self.name, schema, (DUPLICATE_OF, SIMILARITY))
        return dict(schema)

    def summarize(self, table: pa.Table) -> pa.Table:
        """The id and the fingerprint of each row."""
        texts = self.texts(table)
        found = take_at(self.fingerprints(texts.values.to_pylist()), texts.positions, table.num_rows)
        return found.add_column(0, arrow_field(ROW_ID, "string"), table[ROW_ID])

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """For each batch: the places of the rows that go and the ids of those that they repeat."""
        return verdicts(summaries, *self.repeats(summaries))

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Keeps the rows that the verdict does not name."""
        texts = self.texts(table)
        missing = texts.nulls if self._column.on_null == "reject" else []
        return apply_verdict(table, verdict, self.rejects_for, missing, texts.errors.in_order())


def take_at(rows: pa.Table, positions: pa.Array | None, length: int) -> pa.Table:
    """The rows at their positions in a table of this length, null elsewhere; the same without positions."""
    if positions is None:
        return rows
    return rows.take(pc.index_in(pa.array(range(length), pa.int64()), pc.cast(positions, pa.int64())))
