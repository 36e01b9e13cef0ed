"""The rows of a query as pieces: ranges of keys that are fixed before the first row is read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import xxhash

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found, Known, Piece
from dataflow_assets.sources.python_rows import chunk_of_rows
from dataflow_assets.sources.sql.query import Query, Span
from dataflow_assets.sources.sql.spec import SqlSource
from dataflow_assets.sources.sql.values import plain_value
from dataflow_assets.sources.states import State, VersionState

_FIRST_PAGE_ROWS = 100
_MOST_PAGE_ROWS = 10_000
_LOOK_BYTES = 2**21


class QueryPiece(Piece):
    """The rows of a query in one range of keys."""

    def __init__(self, query: Query, spec: SqlSource, slug: str, number: int, span: Span) -> None:
        self.slug = slug
        self.name = f"{query.place}, range {number}"
        self._query, self._spec, self._span = query, spec, span
        self._seen: dict[str, object] = {}

    def states(self) -> dict[str, State]:
        """Count and newest `updated` of the range; without such a column the hash of all its values."""
        if self._spec.updated is not None:
            with self._query.reading() as connection:
                rows, newest = self._query.newest(connection, self._span)
            facts: dict[str, object] = {"rows": rows, "newest": repr(plain_value(newest))}
        else:
            for _ in self._pages(_LOOK_BYTES):
                pass
            facts = self._seen
        return {self.name: VersionState.of(facts)}

    def check_same(self, before: Mapping[str, State]) -> None:
        """Raises SourceError where other rows were read than those that `before` is of."""
        if self._spec.updated is not None:
            super().check_same(before)
        elif before[self.name].hash != VersionState.of(self._seen).hash:
            raise SourceError(f"{self.name} changed while it was read; run the same command again")

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in the order of the key."""
        first, has_numbers = 1, False
        for names, page in self._pages(chunk_bytes):
            rows = [dict(zip(names, map(plain_value, row), strict=True)) for row in page]
            chunk = chunk_of_rows(rows, first, self.name, self._spec)
            keys = [rows[number - first][self._spec.key] for number in chunk.numbers.to_pylist()]
            has_numbers = has_numbers or isinstance(page[0][names.index(self._spec.key)], int | float)
            ids = [f"{self.slug}:{_key_text(key, has_numbers)}" for key in keys]
            yield chunk._replace(row_ids=pa.array(ids, pa.large_string()))
            first += len(page)

    def _pages(self, page_bytes: int) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
        """The rows of the range, about `page_bytes` at once; when all were given, `_seen` is of them."""
        after, size, rows = self._span.after, _FIRST_PAGE_ROWS, 0
        digest = xxhash.xxh3_128()
        while True:
            with self._query.reading() as connection:
                names, page = self._query.page(connection, Span(after, self._span.last), size)
            if not rows:
                digest.update(repr(names).encode())
            for row in page:
                digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace"))
            rows += len(page)
            if page:
                yield names, [tuple(row) for row in page]
                after = page[-1][names.index(self._spec.key)]
            if len(page) < size:
                self._seen = {"rows": rows, "hash": digest.hexdigest()}
                return
            held = sum(len(value) for row in page for value in row if isinstance(value, str)) + 64 * len(page)
            size = max(1, min(_MOST_PAGE_ROWS, 4 * size, size * page_bytes // held))


def _key_text(key: object, among_numbers: bool) -> str:
    """The key in a row id; text that reads as a number is put in quotes where numbers come before it.

    SQLite may have both 1 and '1' in a column, numbers first; `quote` leaves no such quotes.
    """
    text = quote(str(key), safe=" /")
    return f"'{text}'" if among_numbers and isinstance(key, str) and _is_number(key) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def sql_pieces(spec: SqlSource, base_dir: Path, known: Known) -> Found:
    """The ranges of keys as they are now. Raises SourceError, ConfigError."""
    query = Query(spec, base_dir)
    with query.reading() as connection:
        _check_names(query.names(connection), spec, query.place)
        bounds = query.bounds(connection)
        if not bounds.rows:
            raise SourceError(f"the query on {query.place} has no rows; expected at least one")
        if bounds.keyed < bounds.rows:
            raise SourceError(
                f"the key {spec.key!r} of the query on {query.place} is null in "
                f"{bounds.rows - bounds.keyed} of {bounds.rows} rows; expected a value in each: choose "
                "another key, or leave them out"
            )
        if bounds.distinct < bounds.keyed:
            twice = query.a_key_that_stands_twice(connection)
            raise SourceError(
                f"the key {spec.key!r} of the query on {query.place} has {bounds.distinct} values in "
                f"{bounds.rows} rows, {twice!r} for one more than once (as the database compares them); "
                "expected a key that is unique"
            )
        spans: list[Span] = []
        after = None
        while (end := query.key_of(connection, Span(after, bounds.last), spec.range_rows)) is not None:
            spans.append(Span(after, end))
            after = end
        if after != bounds.last:
            spans.append(Span(after, bounds.last))
    stem = Path(query.place).stem.lower()
    named = [(f"{stem}_{number:05d}", f"{query.place} {number}") for number in range(len(spans))]
    slugs = unique_slugs(named)
    return Found(
        [
            QueryPiece(query, spec, slug, number, span)
            for number, (slug, span) in enumerate(zip(slugs, spans, strict=True))
        ],
        [],
        unwatched="" if spec.updated else "a query without `updated` is seen to change only by reading it",
    )


def _check_names(names: list[str], spec: SqlSource, place: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(
            f"{place}: the query has the column {', '.join(twice)} more than once; expected different names: "
            "give one another name with AS"
        )
    for field, name in (("key", spec.key), ("updated", spec.updated)):
        if name is not None and name not in names:
            raise SourceError(
                f"{place}: the query has no column {name!r}; found {', '.join(names)}: correct "
                f"`source.{field}`"
            )
