"""The rows of a ClickHouse source as pieces: ranges of keys that are fixed before the first row is read."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from dataflow_assets.batch import ColumnType, arrow_field
from dataflow_assets.sources.arrow_rows import checked_names, chunk_of_arrow
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.clickhouse.query import Query, Span
from dataflow_assets.sources.clickhouse.spec import ClickHouseSource
from dataflow_assets.sources.clickhouse.types import reading
from dataflow_assets.sources.columns import final_names, json_array
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found, Known, Piece
from dataflow_assets.sources.states import State, VersionState

_MOST_BLOCK_ROWS = 65_536


class RangePiece(Piece):
    """The rows of one range of keys."""

    def __init__(self, query: Query, spec: ClickHouseSource, slug: str, span: Span) -> None:
        self.slug = slug
        self.name = f"{query.place}, {slug}"
        self._query, self._spec, self._span = query, spec, span
        self._readings = {name: reading(name, kind) for name, kind in query.columns.items()}
        self._row_bytes: int | None = None

    def states(self) -> dict[str, State]:
        """Rows and the sum of their hashes, counted by the server."""
        content = self._query.content(self._span)
        self._row_bytes = content.bytes // max(1, content.rows)
        facts = {"rows": content.rows, "hash": str(content.hash), "columns": self._query.columns}
        return {self.name: VersionState.of(facts, content.bytes)}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in the order of the key."""
        names: dict[str, str] | None = None
        first = 1
        with self._query.rows(self._span, self._block_rows(chunk_bytes)) as blocks:
            for keys, rows in blocks:
                if names is None:
                    names = checked_names(rows.schema, self.name, self._spec)
                yield self._chunk(keys, rows, names, first)
                first += rows.num_rows

    def _block_rows(self, chunk_bytes: int) -> int:
        if self._row_bytes is None:
            self.states()
        return max(1, min(_MOST_BLOCK_ROWS, chunk_bytes // max(1, self._row_bytes or 0)))

    def _chunk(self, keys: pa.Array, rows: pa.RecordBatch, names: dict[str, str], first: int) -> Chunk:
        chunk = chunk_of_arrow(rows, names, self.name, first)
        table = chunk.table
        for old, new in names.items():
            if self._readings[old].as_json:
                place = table.schema.get_field_index(new)
                values = [None if text is None else json.loads(text) for text in table[new].to_pylist()]
                table = table.set_column(place, arrow_field(new, "json"), json_array(values))
        texts = keys.to_pylist()
        kept = (texts[number - first] for number in chunk.numbers.to_pylist())
        ids = [f"{self.slug}:{quote(text, safe=' /')}" for text in kept]
        return chunk._replace(table=table, row_ids=pa.array(ids, pa.large_string()))

    def known_columns(self) -> Mapping[str, ColumnType | None]:
        """Those that the server describes."""
        names = final_names(list(self._readings), self.name, self._spec)
        return {new: self._readings[old].kind for old, new in names.items()}


def clickhouse_pieces(spec: ClickHouseSource, base_dir: Path, known: Known) -> Found:
    """The ranges of keys as they are now. Raises SourceError, ConfigError."""
    query = Query(spec)
    spans = query.spans(spec.range_rows)
    stem = query.place.rpartition("/")[2].lower() if spec.query is None else "query"
    slugs = unique_slugs([(f"{stem}_{n:05d}", f"{query.place} {n}") for n in range(len(spans))])
    return Found([RangePiece(query, spec, slug, span) for slug, span in zip(slugs, spans, strict=True)], [])
