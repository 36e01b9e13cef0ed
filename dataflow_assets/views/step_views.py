"""Which views a pipeline has, and a view's rows as DuckDB reads them."""

from collections.abc import Iterator

import pyarrow as pa

from dataflow_assets.batch import Schema, arrow_schema
from dataflow_assets.operators.operator import FAILED_COLUMNS, REJECT_REASON
from dataflow_assets.operators.tables.sql_database import as_duckdb_json, known_to_sql
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.step_rows import StepRows

_MADE_BY_PART: dict[str, Schema] = {
    "kept": {},
    "rejected": {REJECT_REASON: "string"},
    "failed": FAILED_COLUMNS,
}


class View:
    """Rows that DuckDB reads as often as a query names them, batch by batch, never all at once.

    `error` is what reading a batch raised: DuckDB only passes on its text.
    """

    def __init__(self, rows: StepRows, columns: Schema) -> None:
        self.rows = rows.rows
        self.columns = columns
        self.error: Exception | None = None
        self._batches = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A new stream over all rows, as the Arrow PyCapsule interface has it."""
        schema = as_duckdb_json(arrow_schema(self.columns).empty_table()).schema
        return pa.RecordBatchReader.from_batches(schema, self._read()).__arrow_c_stream__(requested_schema)

    def _read(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in self._batches.tables(self.columns):
                yield from as_duckdb_json(table).to_batches()
        except Exception as error:
            self.error = error
            raise


def views_of(work: PipelineWork) -> dict[str, View]:
    """The views by name: of the source and of each step, with what each rejected and what failed.

    A step has views once a batch of it is committed; a step's own name goes before `<step>_rejected`
    of another. Raises MissingBatch where the source was never read.
    """
    keys = work.known_manifest().batches
    names = [SOURCE, *(step.name for step in work.pipeline.ordered_steps)]
    views: dict[str, View] = {}
    for name in names:
        folder = work.folder_of(name)
        kept = StepRows.of(folder, keys)
        if not kept.records:
            continue
        views[name] = View(kept, known_to_sql(kept.columns))
        before = views[work.pipeline.parents(name)[0]] if name != SOURCE else views[name]
        for part in ("rejected", "failed") if name != SOURCE else ("rejected",):
            if f"{name}_{part}" not in names:
                rows = StepRows.of(folder, keys, part)
                columns = rows.columns or {**before.columns, **_MADE_BY_PART[part]}
                views[f"{name}_{part}"] = View(rows, known_to_sql(columns))
    return views
