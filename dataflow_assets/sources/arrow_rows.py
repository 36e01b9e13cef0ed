"""Arrow record batches to chunks: every type to one of the five column types, or a refusal by name."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.arrow_values import UnreadableType, check_type, column_of_arrow
from dataflow_assets.sources.chunk import BadRecord, Chunk, raw_text
from dataflow_assets.sources.columns import UnfitRows, final_names, table_of_arrays
from dataflow_assets.sources.reading_spec import ReadingSpec


def checked_names(schema: pa.Schema, piece: str, spec: ReadingSpec) -> dict[str, str]:
    """The columns that are read: name in the source -> name in the pipeline.

    Raises SourceError for a column that is not there, stands twice or has no column type.
    """
    if twice := sorted(name for name, count in Counter(schema.names).items() if count > 1):
        raise SourceError(f"source {piece}: two columns are called {twice[0]!r}; expected different names")
    if missing := [name for name in spec.columns or [] if name not in schema.names]:
        raise SourceError(
            f"source {piece}: there is no column {missing[0]!r}, which `source.columns` asks for; "
            f"the file has {', '.join(schema.names)}"
        )
    names = final_names(schema.names, piece, spec)
    for name in names:
        try:
            check_type(schema.field(name).type)
        except UnreadableType as error:
            raise SourceError(
                f"source {piece}: column {name!r} has the type {schema.field(name).type}, and {error}; "
                "expected text, numbers, booleans, times, lists or structs. "
                "List the other columns in `source.columns` to leave it out"
            ) from error
    return names


def chunk_of_arrow(batch: pa.RecordBatch, names: dict[str, str], piece: str, first: int) -> Chunk:
    """The rows, numbered from `first`; a row with a value that no column can hold is bad."""
    numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
    bad: list[BadRecord] = []
    while True:
        pairs: list[tuple[str, tuple[pa.Array, ColumnType | None]]] = []
        unfit: dict[int, str] = {}
        for old, new in names.items():
            try:
                pairs.append((new, column_of_arrow(batch.column(batch.schema.get_field_index(old)))))
            except UnfitRows as error:
                unfit |= {row: f"{reason}: column {old!r}" for row, reason in error.reasons.items()}
        if not unfit:
            bad.sort(key=lambda record: record.line)
            return Chunk(table_of_arrays(pairs, batch.num_rows), numbers, bad)
        bad += [
            BadRecord(piece, numbers[row].as_py(), reason, _raw(batch, row)) for row, reason in unfit.items()
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
