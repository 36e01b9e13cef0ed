"""What a row id says of the rows that it was split from: `in:7/0/2` of `in:7/0`, that of `in:7`."""

import re

import pyarrow as pa
import pyarrow.compute as pc

_CHILD = "/[0-9]+$"
_CHILDREN = "(/[0-9]+)+$"


def origin_of(row_id: str) -> str:
    """The id of the row that a child, or a child's child, comes from: `in:7` of `in:7/0/2`."""
    return re.sub(_CHILDREN, "", row_id)


def origins_of(row_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same for a column of ids."""
    return pc.replace_substring_regex(row_ids, _CHILDREN, "")


def parents_of(row_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The ids of the rows that were split last: `in:7/0` of `in:7/0/2`; of other rows their own."""
    return pc.replace_substring_regex(row_ids, _CHILD, "")
