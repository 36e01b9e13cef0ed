"""Rows for Hugging Face: a folder of Parquet shards with the data card, and a `datasets.Dataset`."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_assets.batch import Schema, arrow_schema
from dataflow_assets.exports.nested_types import nested_schema, nested_types, with_nested
from dataflow_assets.exports.row_groups import write_row_groups
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.finished_step import FinishedStep, ancestors
from dataflow_assets.io.atomic import make_folder, storage_errors
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.optional_packages import require
from dataflow_assets.pipeline_work import SOURCE, PipelineWork

if TYPE_CHECKING:
    import datasets

_SHARD_BYTES = 1 << 28
_CHUNK_ROWS = 1000


def write_hugging_face(work: PipelineWork, step: FinishedStep, columns: Schema, folder: Path) -> None:
    """Writes the rows and a card that tells of this step and those before it.

    A JSON column is nested where that holds its values exactly, else it is their text, as the card says.
    """
    types = nested_types(step, columns)
    shards = list(_shards(step.records))
    (folder / "data").mkdir()
    schema = nested_schema(arrow_schema(columns), types)
    for number, records in enumerate(shards):
        path = folder / "data" / f"train-{number:05d}-of-{len(shards):05d}.parquet"
        shard = replace(step.kept, records={record.batch: record for record in records})
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            write_row_groups(writer, (with_nested(table, types) for table in shard.tables(columns)))
    (folder / "README.md").write_text(_card(work, step, columns, types), "utf-8")


def hf_dataset(step: FinishedStep, columns: Schema, content: str) -> "datasets.Dataset":
    """The rows as a Dataset over an Arrow file in the cache of `datasets`, made once for the same content.

    Raises ConfigError without `datasets`, StorageError.
    """
    require({"datasets": "hub"}, "a data set for Hugging Face")
    import datasets
    from datasets.config import HF_DATASETS_CACHE

    file = Path(HF_DATASETS_CACHE) / "dataflow_assets" / f"{hash_of([content, columns])}.arrow"
    if not file.is_file():
        make_folder(file.parent)
        types = nested_types(step, columns)
        schema = nested_schema(arrow_schema(columns), types)
        # several ranks may make the same file at once, each under a name of its own
        own = file.with_name(f".{file.name}.{os.getpid()}")
        with storage_errors(file):
            with pa.ipc.new_stream(own, schema) as writer:
                for table in step.kept.tables(columns):
                    writer.write_table(with_nested(table, types), max_chunksize=_CHUNK_ROWS)
            own.replace(file)
    return datasets.Dataset.from_file(str(file))


def _shards(records: tuple[CommitRecord, ...]) -> Iterator[tuple[CommitRecord, ...]]:
    """Consecutive batches of about 256 MiB of step files; one shard at least."""
    shard: list[CommitRecord] = []
    size = 0
    for record in records:
        if shard and size >= _SHARD_BYTES:
            yield tuple(shard)
            shard, size = [], 0
        shard.append(record)
        size += record.files["kept"].size
    yield tuple(shard)


def _card(
    work: PipelineWork, step: FinishedStep, columns: Schema, types: Mapping[str, pa.DataType | None]
) -> str:
    from dataflow_assets.report.card import card_of
    from dataflow_assets.report.gather import gather

    data = gather(work)
    before = {SOURCE, *ancestors(work, step.name)} - {step.name}
    steps = [facts for facts in data.steps if facts.name in before] + [
        replace(data.step(step.name), columns=columns)
    ]
    card = card_of(replace(data, steps=steps))
    texts = [f"`{name}`" for name, kind in types.items() if kind is None]
    if texts:
        card += (
            "\n## JSON text\n\nValues of different shapes, as their JSON text; `json.loads` gives the "
            f"values: {', '.join(texts)}.\n"
        )
    return card
