"""Vectors of a whole data set: read from a column, kept small and exact in summaries, compared by angle."""

import base64
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.batch import ROW_ID, Schema, arrow_field, places_where, table_of, values_of
from dataflow_assets.errors import ConfigError, MissingValue, RowError, RunError, WrongType
from dataflow_assets.operators.operator import (
    REJECT_REASON,
    DatasetOperator,
    Outcome,
    Params,
    RowErrors,
    Summaries,
)

SIMILARITY = "similarity"
_SUMMARY: Schema = {ROW_ID: "string", "vector": "string"}
_NUMBERS = (int, float)


class VectorParams(Params):
    """Parameters of an operator that compares vectors."""

    column: str = Field(
        "embedding", min_length=1, description="The column of vectors (JSON lists of numbers)."
    )


class Vectors(NamedTuple):
    """Vectors of length 1 in row order, one a line, and the ordinal of each within the data set."""

    ordinals: np.ndarray
    lines: np.ndarray


class Dropped(NamedTuple):
    """A row that goes, for another one: ordinals within the data set, and the cosine of their angle."""

    row: int
    other: int
    similarity: float


class VectorOperator(DatasetOperator):
    """Drops rows by the angles between the vectors of all rows; what stays is unchanged, in order.

    A subclass gives `dropped`. A row without a vector is failed. `other_column` is beside the rejected
    rows: the `row_id` of the row that stayed in their place.
    """

    reason: ClassVar[str]
    other_column: ClassVar[str]
    Params = VectorParams

    @property
    def _column(self) -> str:
        return cast(VectorParams, self.params).column

    @abstractmethod
    def dropped(self, batches: Iterable[Vectors], rows: int) -> Sequence[Dropped]:
        """The rows that go, by ordinal. `batches` can be gone through once; `rows` is how many there are."""

    def reads(self) -> list[str]:
        """The column of vectors."""
        return [self._column]

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError for a column of a name that rejected rows get."""
        for name in (self.other_column, SIMILARITY):
            if name in schema:
                raise ConfigError(
                    f"operator {self.name!r} writes the column {name!r} beside its rejected rows, but the "
                    "input has one already; rename it with `rename_columns`"
                )
        return dict(schema)

    def summarize(self, table: pa.Table) -> pa.Table:
        """The id and the vector of each row, scaled to length 1; null where it has none."""
        vectors = [_packed(value) for value in values_of(table, self._column)]
        columns: Mapping[str, Sequence[object]] = {
            ROW_ID: table[ROW_ID].to_pylist(),
            "vector": [None if isinstance(vector, RowError) else vector for vector in vectors],
        }
        return table_of(columns, _SUMMARY)

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """For each batch the places of the rows that go and of those that fail, and why."""
        sizes = [(key, summary.num_rows) for key, summary in summaries]
        dropped = self.dropped(_vectors_of(summaries), sum(rows for _, rows in sizes))
        return self._verdicts(summaries, sorted(dropped))

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Keeps the rows that the verdict does not name."""
        if not verdict.num_rows:
            return Outcome(table)
        keep = np.ones(table.num_rows, bool)
        keep[verdict["row"].to_numpy()] = False
        has_other = verdict[self.other_column].is_valid()
        rejected = self._rejected(table, verdict.filter(has_other))
        errors = self._errors(table, verdict.filter(pc.invert(has_other))["row"])
        return Outcome(
            table.filter(pa.array(keep)),
            rejected if rejected.num_rows else None,
            errors.failed_rows(table),
        )

    def _rejected(self, table: pa.Table, verdict: pa.Table) -> pa.Table:
        rows = table.take(verdict["row"])
        reasons = pa.array([self.reason] * len(rows), pa.large_string())
        rows = rows.append_column(arrow_field(REJECT_REASON, "string"), reasons)
        rows = rows.append_column(arrow_field(self.other_column, "string"), verdict[self.other_column])
        return rows.append_column(arrow_field(SIMILARITY, "float64"), verdict[SIMILARITY])

    def _errors(self, table: pa.Table, places: pa.ChunkedArray) -> RowErrors:
        """Why these rows have no vector."""
        values = values_of(table.take(places).select([self._column]), self._column)
        problems = [problem for value in values if isinstance(problem := _packed(value), RowError)]
        return RowErrors(places.to_pylist(), [*problems])

    def _verdicts(self, summaries: Summaries, dropped: Sequence[Dropped]) -> Iterator[tuple[str, pa.Table]]:
        names = _ids_of(summaries, {one.other for one in dropped})
        schema: Schema = {"row": "int64", self.other_column: "string", SIMILARITY: "float64"}
        begin = position = 0
        for key, summary in summaries:
            end = begin + summary.num_rows
            unusable = places_where(summary["vector"].is_null()).to_pylist()
            lines: list[tuple[int, str | None, float | None]] = [(place, None, None) for place in unusable]
            while position < len(dropped) and dropped[position].row < end:
                one = dropped[position]
                lines.append((one.row - begin, names[one.other], one.similarity))
                position += 1
            columns = zip(*sorted(lines), strict=True) if lines else ([], [], [])
            yield key, table_of(dict(zip(schema, columns, strict=True)), schema)
            begin = end


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """The cosine of the angle between two vectors: the same whatever is computed beside it."""
    one, two = first.astype(np.float64), second.astype(np.float64)
    return min(1.0, float(np.dot(one, two) / np.sqrt(np.dot(one, one) * np.dot(two, two))))


def _packed(value: object) -> str | RowError:
    """A vector of length 1 as text, its numbers in 32 bits; or why the value is none."""
    if value is None:
        return MissingValue("missing vector: the row has no value in the column of vectors")
    if not isinstance(value, list) or not value or not all(type(number) in _NUMBERS for number in value):
        return WrongType("wrong type: expected a vector, which is a list of numbers that is not empty")
    try:
        length = math.hypot(*value)
    except OverflowError:  # an integer that no float holds
        length = math.inf
    if not length or math.isinf(length):
        return WrongType(f"wrong type: the vector's length is {length:g}, so it has no direction")
    line = np.asarray(value, np.float64) / length
    return base64.b64encode(line.astype("<f4").tobytes()).decode()


def _vectors_of(summaries: Summaries) -> Iterator[Vectors]:
    """The vectors of each batch. Raises RunError where two have not the same number of dimensions."""
    dimensions: int | None = None
    begin = 0
    for key, summary in summaries:
        texts = summary["vector"].to_pylist()
        places = [place for place, text in enumerate(texts) if text is not None]
        lines = [np.frombuffer(base64.b64decode(texts[place]), "<f4") for place in places]
        found = {len(line) for line in lines} | ({dimensions} if dimensions else set())
        if len(found) > 1:
            raise RunError(
                f"batch {key!r} holds vectors of different lengths: {sorted(found)}; vectors can be compared "
                "where one model made all of them"
            )
        dimensions = next(iter(found), None)
        if lines:
            yield Vectors(np.array(places) + begin, np.array(lines, np.float32))
        begin += summary.num_rows


def _ids_of(summaries: Summaries, needed: Iterable[int]) -> dict[int, str]:
    """The `row_id` of the rows with these ordinals."""
    ordinals = np.array(sorted(needed), np.int64)
    names: dict[int, str] = {}
    begin = 0
    for _, summary in summaries:
        end = begin + summary.num_rows
        here = ordinals[slice(*np.searchsorted(ordinals, (begin, end)))]
        names.update(
            zip(here.tolist(), summary[ROW_ID].take(pa.array(here - begin)).to_pylist(), strict=True)
        )
        begin = end
    return names
