"""Pickle: a list of dicts of plain Python values, protocol 5; reading it can run no code."""

import io
import pickle
from collections.abc import Mapping

import pyarrow as pa

from dataflow_assets.batch import ColumnType, rows_of
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.columns import table_of_rows

_NO_PICKLE = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,  # a broken length
    TypeError,
    ValueError,
)


def encode(table: pa.Table) -> bytes:
    """The pickled rows of a table that `check_encodable` let pass."""
    return pickle.dumps(rows_of(table), protocol=5)


def decode(data: pa.Buffer, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of these rows; raises CorruptFile, for a pickle that names any class or function too."""
    try:
        rows = _PlainUnpickler(io.BytesIO(data)).load()
    except _NO_PICKLE as error:
        raise CorruptFile(str(error) or type(error).__name__) from error
    if not isinstance(rows, list):
        raise CorruptFile(f"it holds a {type(rows).__name__}; expected a list of dicts")
    return table_of_rows(dict(enumerate(rows, 1)), schema)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> object:
        raise pickle.UnpicklingError(f"it wants {module_name}.{global_name}; only plain values are read")
