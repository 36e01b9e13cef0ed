"""What Dagster is told of a committed batch: one event a batch, with its numbers and versions."""

from collections.abc import Mapping

import dagster as dg
import pyarrow as pa

from dataflow_assets.batch import Schema
from dataflow_assets.io.batch_stream import Committed
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.preview import markdown_table
from dataflow_assets.io.step_folder import HEAD_ROWS, Notes

DATA_VERSION_TAG = "dagster/data_version"
CODE_VERSION_TAG = "dagster/code_version"
BACKFILL_TAG = "dagster/backfill"
# With this tag on a run Dagster writes no materialization events of its own: the IO manager has
# written one for each batch, with metadata, which a later event without metadata would hide.
DEFER_EVENTS_TAG = "dagster/defer_asset_events"

Metadata = dict[str, dg.MetadataValue]
_NOTHING: Mapping[str, dg.MetadataValue] = {}


def batch_event(
    asset_key: dg.AssetKey,
    committed: Committed,
    lineage: Mapping[str, str],
    more: Mapping[str, dg.MetadataValue] = _NOTHING,
    outdated: bool = False,
) -> dg.AssetMaterialization:
    """The materialization of one batch: its content hash is the data version.

    `lineage` are the tags that say what it was made of; an `outdated` batch is stale by them. `more` is
    metadata beside that of the batch itself.
    """
    record = committed.record
    return dg.AssetMaterialization(
        asset_key,
        partition=record.batch,
        metadata={**batch_metadata(committed), **more},
        tags={
            DATA_VERSION_TAG: data_version(record, outdated),
            CODE_VERSION_TAG: record.code_version,
            **lineage,
        },
    )


def data_version(record: CommitRecord, outdated: bool = False) -> str:
    """What Dagster calls the batch's content; it shows too that parents have other content now."""
    return f"{record.content_hash}-outdated" if outdated else record.content_hash


def batch_metadata(committed: Committed) -> Metadata:
    """The numbers of one batch, its columns, first rows and files."""
    record, folder = committed.record, committed.folder
    head = committed.head
    if head is None:
        kept = folder.read(record.batch, record=record)
        head = kept.slice(0, HEAD_ROWS) if kept is not None else None
    metadata = {
        **count_metadata(record.rows_in, record.rows_out, record.rejected, record.failed, record.seconds),
        **usage_metadata(record.usage),
        **operator_counts(record.counts),
        **_note_metadata(committed.notes),
        "dagster/column_schema": dg.MetadataValue.table_schema(column_schema(record.schema)),
        "path": dg.MetadataValue.path(str(folder.file_of(record.batch))),
        "generation": dg.MetadataValue.int(record.generation),
    }
    for part in ("rejected", "failed"):
        if part in record.files:
            metadata[f"{part}_path"] = dg.MetadataValue.path(str(folder.file_of(record.batch, part)))
    if head is not None:
        metadata["preview"] = _preview(head)
    return metadata


def count_metadata(
    rows_in: int, rows_out: int, rejected: Mapping[str, int], failed: Mapping[str, int], seconds: float
) -> Metadata:
    """Row counts by what became of them, and the speed; seconds of work, rows a second of it."""
    metadata: Metadata = {
        "rows_in": dg.MetadataValue.int(rows_in),
        "dagster/row_count": dg.MetadataValue.int(rows_out),
        "rejected": dg.MetadataValue.int(sum(rejected.values())),
        "failed": dg.MetadataValue.int(sum(failed.values())),
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
        "rows_per_second": dg.MetadataValue.float(round(rows_in / seconds, 1) if seconds else 0.0),
    }
    for kind, counts in (("rejected", rejected), ("failed", failed)):
        if counts:
            metadata[f"{kind}_by_reason"] = dg.MetadataValue.json(dict(counts))
    return metadata


def usage_metadata(usage: Mapping[str, float]) -> Metadata:
    """What calls to models took: counts, tokens, and cost in the prices' currency."""
    numbers = {name: value for name, value in usage.items() if name != "cost"}
    metadata: Metadata = {name: dg.MetadataValue.int(int(value)) for name, value in numbers.items()}
    if "cost" in usage:
        metadata["cost"] = dg.MetadataValue.float(round(usage["cost"], 6))
    return metadata


def operator_counts(counts: Mapping[str, int]) -> Metadata:
    """The operator's own numbers, where it has some."""
    return {"counts": dg.MetadataValue.json(dict(counts))} if counts else {}


def _note_metadata(notes: Notes) -> Metadata:
    """Numbers as such, texts as they are."""
    return {
        name: dg.MetadataValue.text(value)
        if isinstance(value, str)
        else dg.MetadataValue.int(value)
        if isinstance(value, int)
        else dg.MetadataValue.float(value)
        for name, value in notes.items()
    }


def column_schema(schema: Schema) -> dg.TableSchema:
    """The columns for Dagster's column view."""
    return dg.TableSchema(columns=[dg.TableColumn(name, kind) for name, kind in schema.items()])


def _preview(head: pa.Table) -> dg.MetadataValue:
    return dg.MetadataValue.md(markdown_table(head))
