"""What a reader of files gives: rows with their numbers, records set aside, or the point of a break."""

from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.errors import SourceError

MAX_RAW_CHARS = 4096


class BadRecord(NamedTuple):
    r"""A record that cannot be read as a row.

    `line` is the 1-based line (jsonl, csv, tsv, txt), record number (json, parquet) or file number
    (rows: file), in one sequence with the numbers of the rows;
    `raw` is what the file holds there, invalid bytes as `\xNN`, cut at 4,096 characters.
    """

    file: str
    line: int
    reason: str
    raw: str


class Chunk(NamedTuple):
    """Some rows of one file, in order.

    `table` has columns of the five types; a column of nulls alone has Arrow type null. `numbers`
    (int64) is the 1-based line or record number of each row, the same after another line was fixed.
    """

    table: pa.Table
    numbers: pa.Array
    bad: list[BadRecord]


class BrokenInput(SourceError):
    """The file cannot be read past some point; the records before it were given."""


def raw_text(raw: bytes, size: int | None = None) -> str:
    """The bytes as readable text, cut with a note; `size` is the whole length where `raw` is its head."""
    size = len(raw) if size is None else size
    text = raw[: 4 * MAX_RAW_CHARS].decode("utf-8", "backslashreplace")
    if len(text) <= MAX_RAW_CHARS and size == len(raw):
        return text
    return f"{text[:MAX_RAW_CHARS]} … (cut; {size} bytes in all)"
