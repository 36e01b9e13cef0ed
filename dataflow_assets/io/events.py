"""What Dagster is told of a committed batch: one event a batch, with its numbers and versions."""

from collections.abc import Mapping

import dagster as dg

from dataflow_assets.io.asset_columns import NO_COLUMNS, AssetColumns
from dataflow_assets.io.batch_stream import Committed
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.samples import Samples, counts_table, samples_of
from dataflow_assets.io.step_folder import PARTS, Notes
from dataflow_assets.operators.operator import Outcome

DATA_VERSION_TAG = "dagster/data_version"
CODE_VERSION_TAG = "dagster/code_version"
BACKFILL_TAG = "dagster/backfill"
# With this tag on a run Dagster writes no materialization events of its own: the IO manager has
# written one for each batch, with metadata, which a later event without metadata would hide.
DEFER_EVENTS_TAG = "dagster/defer_asset_events"
SUMMARY = "profile"
_OUTDATED = "-outdated"

Metadata = dict[str, dg.MetadataValue]
_NOTHING: Mapping[str, dg.MetadataValue] = {}


def batch_event(
    asset_key: dg.AssetKey,
    committed: Committed,
    lineage: Mapping[str, str],
    more: Mapping[str, dg.MetadataValue] = _NOTHING,
    columns: AssetColumns = NO_COLUMNS,
    outdated: bool = False,
    earlier: Metadata | None = None,
) -> dg.AssetMaterialization:
    """The materialization of one batch: its content hash is the data version.

    `lineage` are the tags that say what it was made of; an `outdated` batch is stale by them. `more` is
    metadata beside that of the batch itself, `columns` says what its columns mean, `earlier` is the
    metadata of an event of the same commit.
    """
    record = committed.record
    return dg.AssetMaterialization(
        asset_key,
        partition=record.batch,
        metadata={**(earlier or batch_metadata(committed)), **columns.metadata(record.schema), **more},
        tags={
            DATA_VERSION_TAG: data_version(record, outdated),
            CODE_VERSION_TAG: record.code_version,
            **lineage,
        },
    )


def data_version(record: CommitRecord, outdated: bool = False) -> str:
    """What Dagster calls the batch's content; it shows too that parents have other content now."""
    return f"{record.content_hash}{_OUTDATED}" if outdated else record.content_hash


def batch_metadata(committed: Committed) -> Metadata:
    """The numbers of one batch, its columns, some rows and its files."""
    record, folder = committed.record, committed.folder
    metadata = {
        **count_metadata(record.rows_in, record.rows_out, record.rejected, record.failed, record.seconds),
        **usage_metadata(record.usage),
        **operator_counts(record.counts),
        **_note_metadata(committed.notes),
        **sample_metadata(committed),
        "path": dg.MetadataValue.path(place_of(folder.file_of(record.batch))),
    }
    for part in ("rejected", "failed"):
        if part in record.files:
            metadata[f"{part}_path"] = dg.MetadataValue.path(place_of(folder.file_of(record.batch, part)))
    metadata["generation"] = dg.MetadataValue.int(record.generation)
    return {**metadata, **NO_COLUMNS.metadata(record.schema)}


def earlier_metadata(instance: dg.DagsterInstance, key: dg.AssetKey, committed: Committed) -> Metadata | None:
    """What the newest event of the batch says, where it tells of this very commit; else None.

    So values before and after stay to be seen when a batch is found done.
    """
    record = committed.record
    wanted = dg.AssetRecordsFilter(key, asset_partitions=[record.batch])
    found = instance.fetch_materializations(wanted, limit=1).records
    event = found[0].asset_materialization if found else None
    if event is None or not _is_of(event, committed):
        return None
    return {name: value for name, value in event.metadata.items() if name != SUMMARY}


def _is_of(event: dg.AssetMaterialization, committed: Committed) -> bool:
    record, metadata, tags = committed.record, event.metadata, event.tags or {}
    facts = [metadata[name].value if name in metadata else None for name in ("generation", "path")]
    version = tags.get(DATA_VERSION_TAG, "").removesuffix(_OUTDATED)
    path = str(committed.folder.file_of(record.batch))
    return [version, *facts] == [record.content_hash, record.generation, path]


def sample_metadata(committed: Committed) -> Metadata:
    """Some rows of the batch: the first kept ones, values before and after, rows that did not go on.

    Of a batch that was there before, what came in is not read again.
    """
    record, samples = committed.record, committed.samples or _stored_samples(committed)
    dropped = _with_counts(record.rejected, record.rows_in, "reject_reason", samples.rejected)
    failed = _with_counts(record.failed, record.rows_in, "error_class", samples.failed)
    tables = {
        "preview": samples.preview,
        "before_and_after": samples.changed,
        "drop_reasons": dropped,
        "failures": failed,
    }
    return {name: dg.MetadataValue.md(text) for name, text in tables.items() if text}


def rejected_metadata(example: Committed, rejected: Mapping[str, int], rows_in: int) -> Metadata:
    """The reasons of all these rejected rows, with rows of one batch."""
    samples = example.samples or _stored_samples(example)
    text = _with_counts(rejected, rows_in, "reject_reason", samples.rejected)
    return {"drop_reasons": dg.MetadataValue.md(text)}


def _with_counts(counts: Mapping[str, int], rows_in: int, reason: str, examples: str) -> str:
    return f"{counts_table(counts, rows_in, reason)}\n\nFor example:\n\n{examples}" if counts else ""


def _stored_samples(committed: Committed) -> Samples:
    record, folder = committed.record, committed.folder
    kept, rejected, failed = (folder.read(record.batch, part, record) for part in PARTS)
    assert kept is not None
    return samples_of(Outcome(kept, rejected, failed))


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
