"""The five file formats of a step: a table to deterministic bytes, and exactly the table back.

| format  | null          | NaN, infinity | JSON columns          | missing from the format                |
|---------|---------------|---------------|-----------------------|----------------------------------------|
| jsonl   | `null`        | refused       | embedded JSON values  | one object a line, no spaces, no BOM   |
| json    | `null`        | refused       | embedded JSON values  | one array, one object a line           |
| csv     | empty         | `NaN`, `inf`  | their text            | header, comma; `""` is the empty text  |
| parquet | null          | as they are   | their text            | not packed, row groups of 64 MiB       |
| pickle  | None          | as they are   | Python values         | protocol 5, list of dicts              |

`decode(encode(table))` equals the table, types included, and encodes to the same bytes again.
`-0.0`, the extremes of int64 and every character survive in all of them. A file of another writer
is no input here: `sources` reads those.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import pyarrow as pa

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import ConfigError, CorruptFile
from dataflow_assets.io.formats import csv_text, json_array, jsonl, parquet, pickled
from dataflow_assets.io.formats.columns import check_encodable, unfit_numbers

__all__ = ["EXTENSIONS", "Format", "decode", "encode", "encode_pieces", "unfit_numbers"]

Format = Literal["jsonl", "json", "csv", "parquet", "pickle"]
EXTENSIONS: dict[Format, str] = {
    "jsonl": "jsonl",
    "json": "json",
    "csv": "csv",
    "parquet": "parquet",
    "pickle": "pickle",
}
_PIECE_BYTES = 2 * 2**20
_MODULES = {"jsonl": jsonl, "json": json_array, "csv": csv_text, "parquet": parquet, "pickle": pickled}


def encode(table: pa.Table, format: Format) -> pa.Buffer | bytes | memoryview:
    """The bytes of a table of the five column types; the same for every chunking of it.

    Raises UnwritableValue, with column and row, where the format cannot hold a value exactly, and
    KeyError for a column of a foreign Arrow type.
    """
    check_encodable(table, format)
    return _MODULES[format].encode(table)


def encode_pieces(table: pa.Table, format: Format) -> Iterator[pa.Buffer | bytes | memoryview]:
    """The same bytes as `encode`, piece by piece where the format allows it, so that little is in memory.

    Raises as `encode` does, before the first piece.
    """
    if format != "jsonl" or not table.num_rows:
        yield encode(table, format)
        return
    check_encodable(table, format)
    rows = max(1, _PIECE_BYTES * table.num_rows // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield jsonl.encode(table.slice(start, rows))


def decode(
    data: pa.Buffer | bytes | memoryview,
    format: Format,
    schema: Mapping[str, ColumnType],
    *,
    allow_pickle: bool = False,
) -> pa.Table:
    """The table that was encoded, with the columns of `schema` in its order.

    Raises CorruptFile, saying what was found, where the bytes are no such table. It cannot see that
    a value was exchanged for another of its type: compare `content_hash` with the commit record.
    Raises ConfigError for pickle without `allow_pickle`.
    """
    if format == "pickle" and not allow_pickle:
        raise ConfigError(
            "a pickle file is read only where the pipeline allows it by name: "
            "add `allow_pickle: true` to the pipeline, or choose another `format`"
        )
    try:
        return _MODULES[format].decode(pa.py_buffer(data), schema)
    except CorruptFile as error:
        raise CorruptFile(f"no {format} as it was written: {error}") from error.__cause__
