"""Edits only those texts of a column that need it, at the cost of those texts."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def edited_where(
    texts: pa.ChunkedArray,
    mask: pa.ChunkedArray,
    edit: Callable[[pa.ChunkedArray], pa.Array | pa.ChunkedArray],
) -> pa.ChunkedArray:
    """The column with `edit` applied to the texts where `mask` is true; the same object if there are none.

    `edit` gets those texts alone, in order, and returns one text for each. Neither may hold nulls.
    """
    if not pc.any(mask).as_py():
        return texts
    edited = _one_chunk(edit(texts.filter(mask)))
    spread = _spread(edited, mask.to_numpy())
    return pa.chunked_array([pc.if_else(_one_chunk(mask), spread, _one_chunk(texts))])


def texts_by_row(texts: pa.ChunkedArray, edit: Callable[[str], str]) -> pa.Array:
    """`edit` applied to one text after another."""
    return pa.array(list(map(edit, texts.to_pylist())), pa.large_string())


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _spread(values: pa.Array, mask: np.ndarray) -> pa.Array:
    """The values at the true places of the mask, empty texts at the others, without copying a text.

    (`replace_with_mask` and `take` do the same ten times slower on large strings.)
    """
    _, offset_buffer, data = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.zeros(len(mask) + 1, np.int64)
    lengths[0] = offsets[0]
    lengths[1:][mask] = np.diff(offsets)
    buffers = [None, pa.py_buffer(np.cumsum(lengths)), data]
    return pa.Array.from_buffers(pa.large_string(), len(mask), buffers)
