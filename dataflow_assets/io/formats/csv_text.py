"""CSV: a header, commas, quotes only where they are needed; null is empty, the empty text is `""`.

JSON columns are their text, bools `true` and `false`, floats as short as they are exact.
"""

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.csv

from dataflow_assets.batch import ColumnType, arrow_schema
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.columns import check_columns, in_polars

_BLOCK_BYTES = 1 << 22
_MAX_BLOCK_BYTES = 2**31 - 1
_PARSE = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)


def encode(table: pa.Table) -> bytes:
    """The CSV text of a table that `check_encodable` let pass."""
    file = io.BytesIO()
    file.write(",".join(map(_quoted, table.column_names)).encode() + b"\n")
    in_polars(table).write_csv(file, include_header=False, quote_style="necessary")
    return file.getvalue()


def _quoted(name: str) -> str:
    is_plain = name == name.strip() and name.isprintable() and not set(name) & set('",')
    return name if name and is_plain else '"' + name.replace('"', '""') + '"'


def decode(data: pa.Buffer, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of this text; raises CorruptFile."""
    convert = pyarrow.csv.ConvertOptions(
        column_types=arrow_schema(schema),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["true"],
        false_values=["false"],
    )
    if not schema and data.to_pybytes() == b"\n":
        return arrow_schema(schema).empty_table()  # a line end alone is else one column without a name
    table = _read(data, convert)
    check_columns(table, schema)
    return pa.Table.from_arrays([table[name] for name in schema], schema=arrow_schema(schema))


def _read(data: pa.Buffer, convert: pyarrow.csv.ConvertOptions) -> pa.Table:
    for block_bytes in (_BLOCK_BYTES, min(data.size + 1, _MAX_BLOCK_BYTES)):
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=block_bytes)
        try:
            return pyarrow.csv.read_csv(
                pa.BufferReader(data), read_options=read, parse_options=_PARSE, convert_options=convert
            )
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block_bytes > data.size:
                raise CorruptFile(str(error)) from error
    raise CorruptFile("one row has more than 2 GiB")
