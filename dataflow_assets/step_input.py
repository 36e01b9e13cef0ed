"""What a step reads of one batch: the rows of its parents, joined where there are several."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, arrow_field
from dataflow_assets.errors import MissingBatch
from dataflow_assets.io.batch_stream import NOTHING_HANDED, Handed
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.operators.operator import REJECT_REASON


class InputRows(NamedTuple):
    """What a step reads of one batch: its rows, and those that a join left without a partner."""

    table: pa.Table
    unmatched: pa.Table | None


@dataclass(frozen=True)
class StepInput:
    """The batches of a step's parents; several parents are joined on `row_id`.

    `columns` says for a join from which parent each column is taken.
    """

    parents: Mapping[str, StepFolder]
    columns: Mapping[str, str] | None = None

    def hashes(self, key: str, handed: Handed = NOTHING_HANDED) -> dict[str, str]:
        """The content hash of the batch in each parent. Raises MissingBatch."""
        return {
            name: handed[name].content_hash
            if name in handed
            else committed_record(name, folder, key).content_hash
            for name, folder in self.parents.items()
        }

    def read(self, key: str, handed: Handed = NOTHING_HANDED) -> InputRows:
        """The rows, in the order of the first parent. Raises MissingBatch, CorruptFile."""
        tables = {}
        for name, folder in self.parents.items():
            table = handed[name].table if name in handed else None
            table = folder.read(key) if table is None else table
            assert table is not None
            tables[name] = table
        if self.columns is None:
            return InputRows(next(iter(tables.values())), None)
        return joined(tables, self.columns)


def committed_record(name: str, folder: StepFolder, key: str) -> CommitRecord:
    """The record of a batch of the step or state `name`. Raises MissingBatch where it is not committed."""
    record = folder.record(key)
    if record is None:
        raise MissingBatch(
            f"batch {key!r} of step {name!r} is not committed in {folder.path}; materialize {name!r} first"
        )
    return record


def joined(tables: Mapping[str, pa.Table], columns: Mapping[str, str]) -> InputRows:
    """The rows that every table has, each column from the table that `columns` names.

    A row that a table lacks is unmatched, with the reason `missing_in_<step>`.
    """
    names = list(tables)
    ids = {name: set(table[ROW_ID].to_pylist()) for name, table in tables.items()}
    common = set.intersection(*ids.values())
    first = tables[names[0]]
    kept = first.filter(pc.is_in(first[ROW_ID], pa.array(sorted(common), pa.large_string())))
    arrays, fields = [], []
    for column, parent in columns.items():
        table = tables[parent]
        positions = pc.index_in(kept[ROW_ID], table[ROW_ID])
        arrays.append(table[column].take(positions))
        fields.append(table.schema.field(column))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return InputRows(table, _unmatched(tables, ids, common))


def _unmatched(
    tables: Mapping[str, pa.Table], ids: Mapping[str, set[str]], common: set[str]
) -> pa.Table | None:
    parts, seen = [], set(common)
    for table in tables.values():
        positions = [i for i, row_id in enumerate(table[ROW_ID].to_pylist()) if row_id not in seen]
        if not positions:
            continue
        rows = table.take(pa.array(positions, pa.int64()))
        row_ids = rows[ROW_ID].to_pylist()
        reasons = [f"missing_in_{_first_lacking(ids, row_id)}" for row_id in row_ids]
        parts.append(
            rows.append_column(arrow_field(REJECT_REASON, "string"), pa.array(reasons, pa.large_string()))
        )
        seen.update(row_ids)
    return pa.concat_tables(parts, promote_options="default") if parts else None


def _first_lacking(ids: Mapping[str, set[str]], row_id: str) -> str:
    return next(name for name, present in ids.items() if row_id not in present)
