"""Cuts long texts into chunks of whole sentences."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pydantic import Field, model_validator

from dataflow_assets.batch import ROW_ID, Schema, arrow_field, arrow_schema, column_of, schema_of
from dataflow_assets.operators.operator import (
    REJECT_REASON,
    ColumnParams,
    Outcome,
    TextOperator,
)
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.sentences import chunk_spans

_PLACE: Schema = {"chunk_index": "int64", "start": "int64", "end": "int64"}


class _Chunk(NamedTuple):
    parent: int
    number: int
    start: int
    end: int
    text: str


class _ChunkTextParams(ColumnParams):
    max_chars: int = Field(4000, ge=1, description="The most characters (code points) of a chunk.")
    overlap: int = Field(0, ge=0, description="Characters, in whole sentences, that are repeated at most.")

    @model_validator(mode="after")
    def _chunks_go_on(self) -> "_ChunkTextParams":
        if self.overlap >= self.max_chars:
            raise ValueError(f"overlap {self.overlap} must be less than max_chars {self.max_chars}")
        return self


@register
class ChunkText(TextOperator):
    """Cuts a text into chunks of whole sentences; a chunk never has more than `max_chars` characters.

    Grain: one row becomes one row a chunk. Reads `column` (string) and replaces it by the chunk; adds
    `chunk_index` (from 0), `start` and `end` (code points): `text[start:end]` is the chunk, nothing is
    trimmed. English and Chinese sentences, lines and fenced code blocks are kept whole where they
    fit; a longer one is cut at commas and spaces, and where there are none, between characters as a
    person sees them. A row without any character is rejected as `empty`. A visible character of more
    than `max_chars` code points fails its row.

    Example:
        - {name: chunks, type: chunk_text, params: {column: text, max_chars: 1000, overlap: 100}}
    """

    name = "chunk_text"
    splits = True
    Params = _ChunkTextParams
    params: _ChunkTextParams

    def writes(self) -> Schema:
        """The chunk, its number and its place."""
        return {self.params.column: "string", **_PLACE}

    def apply(self, table: pa.Table) -> Outcome:
        """The chunks of each text, in order."""
        texts = self.texts(table)
        places = range(table.num_rows) if texts.positions is None else texts.positions.to_pylist()
        errors, chunks, empty = texts.errors, list[_Chunk](), list(texts.nulls)
        for place, text in zip(places, texts.values.to_pylist(), strict=True):
            try:
                found = self._chunks(place, text)
            except ValueError as error:
                errors.add(place, error)
                continue
            chunks += found
            empty += [] if found else [place]
        kept = self._kept(table, chunks)
        return Outcome(kept, _rejected(table, sorted(empty)), errors.in_order().failed_rows(table))

    def _chunks(self, place: int, text: str) -> list[_Chunk]:
        spans = chunk_spans(text, self.params.max_chars, self.params.overlap)
        return [_Chunk(place, n, start, end, text[start:end]) for n, (start, end) in enumerate(spans)]

    def _kept(self, table: pa.Table, chunks: Sequence[_Chunk]) -> pa.Table:
        rows = table.take(pa.array([chunk.parent for chunk in chunks], pa.int64()))
        row_ids = rows[ROW_ID].to_pylist()
        new = {
            ROW_ID: [f"{row_id}/{chunk.number}" for row_id, chunk in zip(row_ids, chunks, strict=True)],
            self.params.column: [chunk.text for chunk in chunks],
            "chunk_index": [chunk.number for chunk in chunks],
            "start": [chunk.start for chunk in chunks],
            "end": [chunk.end for chunk in chunks],
        }
        schema = self.output_schema(schema_of(table))
        arrays = [column_of(new[name], kind) if name in new else rows[name] for name, kind in schema.items()]
        return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _rejected(table: pa.Table, places: list[int]) -> pa.Table | None:
    if not places:
        return None
    reasons = pa.array(["empty"] * len(places), pa.large_string())
    rows = table.take(pa.array(places, pa.int64()))
    return rows.append_column(arrow_field(REJECT_REASON, "string"), reasons)
