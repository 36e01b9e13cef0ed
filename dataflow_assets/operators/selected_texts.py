"""Edits only those texts of a column that need it, at the cost of those texts."""

from collections.abc import Callable

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
    edited = one_chunk(edit(texts.filter(mask)))
    return pa.chunked_array([pc.replace_with_mask(one_chunk(texts), one_chunk(mask), edited)])


def replaced(texts: pa.ChunkedArray, pattern: str, literal: str) -> pa.ChunkedArray:
    """Every match of an RE2 pattern replaced by this text, in which a backslash is only that."""
    return pc.replace_substring_regex(texts, pattern, literal.replace("\\", "\\\\"))


def texts_by_row(texts: pa.ChunkedArray, edit: Callable[[str], str]) -> pa.Array:
    """`edit` applied to one text after another."""
    return pa.array(list(map(edit, texts.to_pylist())), pa.large_string())


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array, copied only where it has several chunks."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
