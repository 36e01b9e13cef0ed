"""The outcomes of chunks put together."""

from collections.abc import Iterable

import pyarrow as pa

from dataflow_assets.operators.operator import Outcome


def joined_outcomes(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcomes of the chunks of one batch as one, in the order given."""
    kept, rejected, failed = zip(*outcomes, strict=True)
    return Outcome(pa.concat_tables(kept), _joined(rejected), _joined(failed))


def _joined(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    present = [table for table in tables if table is not None and table.num_rows]
    return pa.concat_tables(present) if present else None
