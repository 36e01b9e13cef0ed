"""What a reader of files gives: rows with their numbers, records set aside, or the point of a break."""

from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.errors import SourceError

MAX_RAW_CHARS = 4096


class BadRecord(NamedTuple):
    r"""A record that cannot be read as a row.

    `line` is the 1-based line (jsonl, csv, tsv, txt), record number (json, parquet, documents) or file
    number (rows: file), in one sequence with the numbers of the rows;
    `reason` is one of few kinds, by which records are counted, then a colon and what this record has of it;
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
    `row_ids` (large_string) are the ids of the rows, where they are not made of the number.
    """

    table: pa.Table
    numbers: pa.Array
    bad: list[BadRecord]
    row_ids: pa.Array | None = None

    def filtered(self, keep: pa.Array, bad: list[BadRecord]) -> "Chunk":
        """The rows where `keep` is true, with these bad records."""
        row_ids = None if self.row_ids is None else self.row_ids.filter(keep)
        return Chunk(self.table.filter(keep), self.numbers.filter(keep), bad, row_ids)

    def sliced(self, start: int, length: int | None, bad: list[BadRecord]) -> "Chunk":
        """Some rows in a row, with these bad records."""
        row_ids = None if self.row_ids is None else self.row_ids.slice(start, length)
        return Chunk(self.table.slice(start, length), self.numbers.slice(start, length), bad, row_ids)


class BrokenInput(SourceError):
    """The file cannot be read past some point; the records before it were given."""


def raw_text(raw: bytes, size: int | None = None) -> str:
    """The bytes as readable text, cut with a note; `size` is the whole length where `raw` is its head."""
    size = len(raw) if size is None else size
    text = raw[: 4 * MAX_RAW_CHARS].decode("utf-8", "backslashreplace")
    if len(text) <= MAX_RAW_CHARS and size == len(raw):
        return text
    return f"{text[:MAX_RAW_CHARS]} … (cut; {size} bytes in all)"
