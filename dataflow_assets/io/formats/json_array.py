"""One JSON array of objects, one object a line: JSON lines with brackets and commas."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dataflow_assets.batch import ColumnType, arrow_schema
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats import jsonl

_HEAD, _TAIL, _EMPTY = b"[\n", b"\n]\n", b"[\n]\n"


def encode(table: pa.Table) -> bytes:
    """The array of a table that `check_encodable` let pass."""
    if not table.num_rows:
        return _EMPTY
    return b"".join([_HEAD, memoryview(jsonl.objects(table, end=",\n"))[:-2], _TAIL])


def decode(data: pa.Buffer, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of this array; raises CorruptFile. Line 1 of a message is the first object."""
    if data.equals(pa.py_buffer(_EMPTY)):
        return arrow_schema(schema).empty_table()
    head, tail = bytes(data[: len(_HEAD)]), bytes(data[-len(_TAIL) :])
    if head != _HEAD or tail != _TAIL or data.size <= len(_EMPTY):
        raise CorruptFile(f"expected an array with one object a line; it begins {bytes(data[:100])!r}")
    characters = np.frombuffer(data, np.uint8)[len(_HEAD) : 1 - len(_TAIL)].copy()
    commas = np.flatnonzero(characters == ord("\n"))[:-1] - 1
    if (characters[commas] != ord(",")).any():
        raise CorruptFile("an object of the array ends without a comma")
    characters[commas] = ord(" ")
    return jsonl.decode(pa.py_buffer(characters), schema)
