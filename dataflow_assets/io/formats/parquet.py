"""Parquet: snappy, row groups of 64 MiB, and no metadata of ours, so that every reader takes it plainly."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_assets.batch import ColumnType, arrow_schema
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.columns import check_columns

_GROUP_BYTES = 1 << 26
_SHORT_BYTES = 32


def encode(table: pa.Table) -> pa.Buffer:
    """The Parquet file of a table. JSON columns are text columns."""
    table = table.combine_chunks().replace_schema_metadata()  # pages follow the chunks
    group_rows = max(1, _GROUP_BYTES * table.num_rows // max(1, table.nbytes))
    file = pa.BufferOutputStream()
    pq.write_table(
        table,
        file,
        row_group_size=group_rows,
        compression="snappy",
        use_dictionary=_with_short_values(table),  # pyright: ignore[reportArgumentType]
        store_schema=False,
        write_page_checksum=True,
    )
    return file.getvalue()


def _with_short_values(table: pa.Table) -> list[str]:
    """The columns worth a dictionary: long texts seldom repeat, and looking costs a fifth of the writing."""
    limit = _SHORT_BYTES * table.num_rows
    return [
        name for name, column in zip(table.column_names, table.columns, strict=True) if column.nbytes < limit
    ]


def decode(data: pa.Buffer, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of this file; raises CorruptFile."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(data), binary_type=pa.large_binary(), page_checksum_verification=True
        )
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
