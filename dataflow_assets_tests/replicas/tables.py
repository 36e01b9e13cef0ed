"""Tables for the operators with faults."""

import pyarrow as pa

from dataflow_assets.batch import table_of


def numbered(rows: int, start: int = 0) -> pa.Table:
    """Rows with `id` from `start` on, and `text`."""
    ids = list(range(start, start + rows))
    columns = {"row_id": [f"r:{i}" for i in ids], "id": ids, "text": ["x" * (i % 7) for i in ids]}
    return table_of(columns, {"row_id": "string", "id": "int64", "text": "string"})


def ids(table: pa.Table | None) -> list[int]:
    """The ids of a table that may be missing."""
    return [] if table is None else table["id"].to_pylist()
