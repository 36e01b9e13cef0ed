"""Parquet: not packed, row groups of 64 MiB, and no metadata of ours, so that every reader takes it plainly.

Without rows there is no row group: `datasets` fails at one that is empty.

Pages have no checksums: readers of step files compare the hash of the whole file with the record.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_assets.batch import ColumnType, arrow_schema
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.columns import check_columns

_GROUP_BYTES = 1 << 26
_SAMPLE_ROWS = 1000


def encode(table: pa.Table) -> pa.Buffer:
    """The Parquet file of a table. JSON columns are text columns."""
    table = table.combine_chunks().replace_schema_metadata()  # pages follow the chunks
    group_rows = max(1, _GROUP_BYTES * table.num_rows // max(1, table.nbytes))
    file = pa.BufferOutputStream()
    with pq.ParquetWriter(
        file,
        table.schema,
        compression="none",
        use_dictionary=_with_repetitions(table),  # pyright: ignore[reportArgumentType]
        store_schema=False,
    ) as writer:
        if table.num_rows:
            writer.write_table(table, row_group_size=group_rows)
    return file.getvalue()


def _with_repetitions(table: pa.Table) -> list[str]:
    """The columns worth a dictionary: looking for one where values seldom repeat is most of the writing."""
    sample = table.slice(0, _SAMPLE_ROWS)
    return [
        name
        for name, column in zip(sample.column_names, sample.columns, strict=True)
        if 2 * pc.count_distinct(column, mode="all").as_py() <= sample.num_rows  # pyright: ignore
    ]


def decode(data: pa.Buffer, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of this file; raises CorruptFile."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data), binary_type=pa.large_binary())
        table = file.read(use_threads=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorruptFile(str(error)) from error
    check_columns(table, schema)
    expected = arrow_schema(schema)
    for field in expected:
        found = table.schema.field(field.name).type
        if found != field.type:
            raise CorruptFile(f"column {field.name!r} is {found}; expected {field.type}")
    return pa.Table.from_arrays([table[name] for name in schema], schema=expected)
