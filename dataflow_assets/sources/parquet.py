"""Parquet to chunks: every Arrow type to one of the five column types, without loss or a refusal by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_assets.sources.arrow_rows import checked_names, chunk_of_arrow
from dataflow_assets.sources.chunk import BrokenInput, Chunk
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.reading_spec import ReadingSpec

_MAX_ROWS = 16_384
_BUFFER_BYTES = 2**20


def as_it_is(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows without a change."""
    return batch


def read_parquet(
    file: SourceFile,
    spec: ReadingSpec,
    chunk_bytes: int,
    changed: Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch] = as_it_is,
) -> Iterator[Chunk]:
    """The rows of the file, numbered as records; `changed` is given rows and the schema of the file.

    Raises SourceError for a column that has no column type, BrokenInput where the file is damaged.
    """
    with _as_broken_input(file.name):
        parquet = pq.ParquetFile(file.path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    with parquet:
        names = checked_names(parquet.schema_arrow, file.name, spec)
        first = 1
        for batch in _batches(parquet, names, file.name, _batch_rows(parquet, chunk_bytes)):
            yield chunk_of_arrow(changed(batch, parquet.schema_arrow), names, file.name, first)
            first += batch.num_rows


@contextmanager
def _as_broken_input(file: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise BrokenInput(
            f"source {file}: {_first_line(error)}; expected a whole parquet file. Copy or write it again"
        ) from error


def _batches(
    parquet: pq.ParquetFile, names: dict[str, str], file: str, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    with _as_broken_input(file):
        yield from parquet.iter_batches(batch_rows, columns=list(names), use_threads=False)


def _first_line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().split("\n")[0].rstrip(".")


def _batch_rows(parquet: pq.ParquetFile, chunk_bytes: int) -> int:
    """How many rows make about `chunk_bytes` of plain data."""
    metadata = parquet.metadata
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    return max(1, min(_MAX_ROWS, metadata.num_rows * chunk_bytes // max(size, 1)))
