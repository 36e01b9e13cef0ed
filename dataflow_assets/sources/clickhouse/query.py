"""The rows of a ClickHouse source in ranges of its key, by queries of which each sees one state."""

import contextlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.clickhouse.address import Address
from dataflow_assets.clickhouse.connection import connect, quoted
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.clickhouse.spec import ClickHouseSource
from dataflow_assets.sources.clickhouse.types import is_key_type, key_parameter, key_text, reading

_ADVICE = "correct `source.clickhouse`, its query and key, or bring the server back"


class Span(NamedTuple):
    """A range of keys, as text: above `after` (None: from the first), up to `last` with it."""

    after: str | None
    last: str


class Content(NamedTuple):
    """What a range holds: rows, a sum of their hashes, bytes."""

    rows: int
    hash: int
    bytes: int


class Query:
    """What is asked of a source. `place` names it without user and password, `columns` has their types.

    Raises ConfigError, SourceError where it cannot be asked, or its key is none.
    """

    def __init__(self, spec: ClickHouseSource) -> None:
        address = Address.of(spec.clickhouse.get_secret_value(), needs_table=spec.query is None)
        self.place = "/".join(filter(None, (address.host, address.database, address.table)))
        table = f"{quoted(address.database)}.{quoted(address.table)}"
        self._from = f"(\n{spec.query or f'SELECT * FROM {table}'}\n) AS source_rows"
        self._key = f"source_rows.{quoted(spec.key)}"
        self._connection = connect(address, "source.clickhouse", SourceError, _ADVICE)
        found = self._connection.rows(f"DESCRIBE (SELECT * FROM {self._from})")
        self.columns = {str(name): re.sub(r"\s+", " ", str(kind)) for name, kind, *_ in found}
        self._key_type = self._checked_key(spec.key)

    def _checked_key(self, name: str) -> str:
        key = self.columns.get(name)
        if key is None:
            raise SourceError(
                f"{self.place}: there is no column {name!r}; found {', '.join(self.columns)}: correct "
                "`source.key`"
            )
        if not is_key_type(key):
            raise SourceError(
                f"{self.place}: the key {name!r} has the type {key}; expected text, an integer, a UUID, a "
                "date or a time: choose another, or cast it in `source.query`"
            )
        return key

    def spans(self, range_rows: int) -> list[Span]:
        """The ranges of `range_rows` rows each, in order. Raises SourceError where the key is not unique."""
        numbered = f"SELECT {self._key} AS k, row_number() OVER (ORDER BY {self._key}) AS n FROM {self._from}"
        last = self._checked_rows()
        ends = self._connection.rows(
            f"SELECT {key_text('k', self._key_type)} FROM ({numbered}) WHERE n % {range_rows} = 0 ORDER BY n"
        )
        texts = [str(end) for (end,) in ends]
        texts += [last] if last not in texts[-1:] else []
        return [Span(after, end) for after, end in zip([None, *texts], texts, strict=False)]

    def _checked_rows(self) -> str:
        """The highest key, where each row has one of its own. Raises SourceError."""
        last = key_text(f"max({self._key})", self._key_type)
        [(rows, keyed, distinct, highest)] = self._connection.rows(
            f"SELECT count(), count({self._key}), uniqExact({self._key}), {last} FROM {self._from}"
        )
        if not rows:
            raise SourceError(f"{self.place} has no rows; expected at least one")
        if keyed < rows:
            raise SourceError(
                f"{self.place}: the key is null in {rows - keyed:,} of {rows:,} rows; expected a value in "
                "each: choose another key, or leave them out"
            )
        if distinct < rows:
            raise SourceError(
                f"{self.place}: the key has {distinct:,} values in {rows:,} rows; expected one of its own "
                "for each: choose another, or say FINAL in `source.query` where rows replace each other"
            )
        return str(highest)

    def content(self, span: Span) -> Content:
        """What the range holds now; the server reads it, nothing of it comes over the network."""
        where, parameters = self._within(span)
        [(rows, hashes, size)] = self._connection.rows(
            "SELECT count(), sum(sipHash64(toString(tuple(source_rows.*)))), sum(byteSize(source_rows.*))"
            f" FROM {self._from} WHERE {where}",
            **parameters,
        )
        return Content(int(rows), int(hashes), int(size))

    @contextlib.contextmanager
    def rows(self, span: Span, block_rows: int) -> Iterator[Iterator[tuple[pa.Array, pa.RecordBatch]]]:
        """Keys as text, and rows, in the order of the key, at most `block_rows` at once."""
        where, parameters = self._within(span)
        readings = [reading(name, kind).expression for name, kind in self.columns.items()]
        selected = ", ".join(f"{expression} AS c{place}" for place, expression in enumerate(readings))
        key = key_text(self._key, self._key_type)
        query = f"SELECT {key} AS k, {selected} FROM {self._from} WHERE {where} ORDER BY {self._key}"
        with self._connection.arrow_batches(query, block_rows, **parameters) as batches:
            yield (
                (batch.column(0), pa.RecordBatch.from_arrays(batch.columns[1:], names=list(self.columns)))
                for batch in batches
                if batch.num_rows
            )

    def _within(self, span: Span) -> tuple[str, dict[str, object]]:
        kind = key_parameter(self._key_type)
        below = f"{self._key} <= {{last:{kind}}}"
        if span.after is None:
            return below, {"last": span.last}
        return f"{self._key} > {{after:{kind}}} AND {below}", {"after": span.after, "last": span.last}
