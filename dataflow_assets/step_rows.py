"""The committed rows of a step as one table in parts: which batches there are, and their columns together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dataflow_assets.batch import Batch, Schema, conform, widen_schema
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.step_folder import StepFolder


@dataclass(frozen=True)
class StepRows:
    """One part of a step (`kept`, `rejected` or `failed`) as its records are now.

    `records` has the committed batches that hold rows of the part, by key, in partition order.
    """

    folder: StepFolder
    records: Mapping[str, CommitRecord]
    part: str = "kept"

    @classmethod
    def of(cls, folder: StepFolder, keys: Sequence[str], part: str = "kept") -> "StepRows":
        """The rows of those of these batches that are committed. Raises StorageError."""
        found = ((key, folder.record(key)) for key in keys)
        return cls(folder, {key: r for key, r in found if r is not None and part in r.files}, part)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(record.files[self.part].rows for record in self.records.values())

    @property
    def columns(self) -> Schema:
        """The columns of all batches, each in the type that holds all its values; `row_id` among them."""
        widened = widen_schema(record.files[self.part].schema for record in self.records.values())
        return {name: kind or "string" for name, kind in widened.items()}

    def batches(self, columns: Schema) -> Iterator[Batch]:
        """One batch after another, with exactly these columns: what a batch lacks is null.

        Raises CorruptFile where a batch is not what its record says, MissingBatch where it is gone.
        """
        for key in self.folder.brought(list(self.records), self.part):
            table = self.folder.read(key, self.part, self.records[key])
            assert table is not None
            yield Batch(key, conform(table, columns))

    def tables(self, columns: Schema) -> Iterator[pa.Table]:
        """The same without the keys."""
        return (batch.table for batch in self.batches(columns))
