"""Row groups of an exported Parquet file: small batches together, large ones cut, none without rows.

`datasets` takes the rows of a file's first row group as the size of its batches, which must not be 0.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

_GROUP_BYTES = 1 << 26
_GROUP_ROWS = 100_000


def write_row_groups(writer: pq.ParquetWriter, tables: Iterable[pa.Table]) -> None:
    """Writes the rows of the tables in their order, in row groups of at most 64 MiB and 100,000 rows."""
    for table in _gathered(tables):
        of_bytes = max(1, _GROUP_BYTES * table.num_rows // max(1, table.nbytes))
        writer.write_table(table, row_group_size=min(_GROUP_ROWS, of_bytes))


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows in tables that are each one of these, or several of one row group together."""
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        if held and (rows + table.num_rows > _GROUP_ROWS or size + table.nbytes > _GROUP_BYTES):
            yield _together(held)
            held, rows, size = [], 0, 0
        if table.num_rows:
            held.append(table)
            rows, size = rows + table.num_rows, size + table.nbytes
    if held:
        yield _together(held)


def _together(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()  # pages follow chunks
