"""Parquet to chunks: every Arrow type to one of the five column types, without loss or a refusal by name."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.arrow_values import UnreadableType, check_type, column_of_arrow
from dataflow_assets.sources.chunk import BadRecord, BrokenInput, Chunk, raw_text
from dataflow_assets.sources.columns import UnfitRows, final_names, table_of_arrays
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.spec import SourceSpec

_MAX_ROWS = 16_384
_BUFFER_BYTES = 2**20


def read_parquet(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """The rows of the file, numbered as records.

    Raises SourceError for a column that has no column type, BrokenInput where the file is damaged.
    """
    with _as_broken_input(file.name):
        parquet = pq.ParquetFile(file.path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    with parquet:
        names = _checked_names(parquet.schema_arrow, file.name, spec)
        first = 1
        for batch in _batches(parquet, names, file.name, _batch_rows(parquet, chunk_bytes)):
            yield _chunk(batch, names, file.name, first)
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


def _checked_names(schema: pa.Schema, file: str, spec: SourceSpec) -> dict[str, str]:
    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        raise SourceError(f"source {file}: two columns are called {twice[0]!r}; expected different names")
    if missing := [name for name in spec.columns or [] if name not in schema.names]:
        raise SourceError(
            f"source {file}: there is no column {missing[0]!r}, which `source.columns` asks for; "
            f"the file has {', '.join(schema.names)}"
        )
    names = final_names(schema.names, file, spec)
    for name in names:
        try:
            check_type(schema.field(name).type)
        except UnreadableType as error:
            raise SourceError(
                f"source {file}: column {name!r} has the type {schema.field(name).type}, and {error}; "
                "expected text, numbers, booleans, times, lists or structs. "
                "List the other columns in `source.columns` to leave it out"
            ) from error
    return names


def _batch_rows(parquet: pq.ParquetFile, chunk_bytes: int) -> int:
    """How many rows make about `chunk_bytes` of plain data."""
    metadata = parquet.metadata
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    return max(1, min(_MAX_ROWS, metadata.num_rows * chunk_bytes // max(size, 1)))


def _chunk(batch: pa.RecordBatch, names: dict[str, str], file: str, first: int) -> Chunk:
    numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
    bad: list[BadRecord] = []
    while True:
        pairs: list[tuple[str, tuple[pa.Array, ColumnType | None]]] = []
        unfit: dict[int, str] = {}
        for old, new in names.items():
            try:
                pairs.append((new, column_of_arrow(batch.column(batch.schema.get_field_index(old)))))
            except UnfitRows as error:
                unfit |= {row: f"column {old!r}: {reason}" for row, reason in error.reasons.items()}
        if not unfit:
            bad.sort(key=lambda record: record.line)
            return Chunk(table_of_arrays(pairs, batch.num_rows), numbers, bad)
        bad += [
            BadRecord(file, numbers[row].as_py(), reason, _raw(batch, row)) for row, reason in unfit.items()
        ]
        keep = pc.invert(pc.is_in(pa.array(range(batch.num_rows)), pa.array(list(unfit))))
        batch, numbers = batch.filter(keep), numbers.filter(keep)


def _raw(batch: pa.RecordBatch, row: int) -> str:
    """The row as readable text, for a person."""
    parts = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            parts.append(f"{name!r}: {column[row].as_py()!r}")
        except ValueError:
            parts.append(f"{name!r}: {column[row].cast(pa.binary()).as_py()!r}")
    return raw_text(f"{{{', '.join(parts)}}}".encode("utf-8", "backslashreplace"))
