"""Python values of a file's records to Arrow columns, exactly, and the names that they get."""

from collections.abc import Iterable, Mapping, Sequence

import orjson
import pyarrow as pa

from dataflow_assets.batch import ColumnType, arrow_field, column_type, json_text
from dataflow_assets.errors import SourceError
from dataflow_assets.operators.operator import RESERVED_COLUMNS
from dataflow_assets.sources.reading_spec import ReadingSpec

MAX_COLUMNS = 4096
MAX_NESTING = 254
_SIMPLE: dict[frozenset[type], ColumnType] = {
    frozenset({str}): "string",
    frozenset({int}): "int64",
    frozenset({float}): "float64",
    frozenset({bool}): "bool",
}


class UnfitRows(Exception):
    """Some rows hold a value that no column can hold; `reasons` by position."""

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


def final_names(names: Iterable[str], file: str, spec: ReadingSpec) -> dict[str, str]:
    """The columns that are read: name in the file -> name in the pipeline, in order.

    Raises SourceError for a name that is taken, reserved or stands twice.
    """
    wanted = None if spec.columns is None else set(spec.columns)
    chosen = {name: spec.rename.get(name, name) for name in names if wanted is None or name in wanted}
    if len(chosen) > MAX_COLUMNS:
        raise SourceError(
            f"source {file}: its records have {len(chosen)} different keys, expected at most {MAX_COLUMNS} "
            "columns. Are ids used as keys? List what you need in `source.columns`"
        )
    by_new: dict[str, str] = {}
    for old, new in chosen.items():
        if new in RESERVED_COLUMNS:
            raise SourceError(
                f"source {file}: column {new!r} has a name that this package uses itself. "
                f"Give it another one in `source.rename`, for example {{{old}: source_{new}}}"
            )
        if new in by_new:
            raise SourceError(
                f"source {file}: the columns {by_new[new]!r} and {old!r} would both be called {new!r}; "
                "expected different names. Change `source.rename`"
            )
        by_new[new] = old
    return chosen


def table_of_values(values: Mapping[str, Sequence[object]], names: Mapping[str, str], rows: int) -> pa.Table:
    """A table of these columns of JSON values under their final names. Raises UnfitRows."""
    pairs = [(new, array_of(values[old])) for old, new in names.items()]
    return table_of_arrays(pairs, rows)


def table_of_arrays(pairs: Sequence[tuple[str, tuple[pa.Array, ColumnType | None]]], rows: int) -> pa.Table:
    """A table of typed arrays; a column of nulls alone has type null. Keeps `rows` without columns."""
    fields = [
        pa.field(name, pa.null()) if kind is None else arrow_field(name, kind) for name, (_, kind) in pairs
    ]
    if not fields:
        return pa.table({"": pa.nulls(rows)}).select([])
    return pa.Table.from_arrays([array for _, (array, _) in pairs], schema=pa.schema(fields))


def array_of(values: Sequence[object]) -> tuple[pa.Array, ColumnType | None]:
    """The array of these JSON values and its type, as `batch.infer_type` has it. Raises UnfitRows."""
    kinds = frozenset(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values)), None
    kind = _SIMPLE.get(kinds, "json")
    if kind != "json":
        try:
            return pa.array(values, arrow_field("", kind).type), kind
        except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
            kind = "json"
    return json_array(values), kind


def json_array(values: Sequence[object]) -> pa.Array:
    """The canonical JSON texts of values without NaN; null stays null. Raises UnfitRows."""
    dumps = orjson.dumps
    try:
        return pa.array([None if value is None else dumps(value) for value in values], pa.large_string())
    except TypeError:
        return careful_json_array(values)


def careful_json_array(values: Sequence[object]) -> pa.Array:
    """The same, slower, for values that orjson cannot write or would change."""
    texts: list[str | None] = []
    reasons: dict[int, str] = {}
    for position, value in enumerate(values):
        text = None
        if is_deeper(value, MAX_NESTING):
            reasons[position] = f"a value is nested deeper than {MAX_NESTING} levels"
        elif value is not None:
            try:
                text = json_text(value)
            except ValueError:
                reasons[position] = "NaN or infinity inside a nested value has no JSON form"
        texts.append(text)
    if reasons:
        raise UnfitRows(reasons)
    return pa.array(texts, pa.large_string())


def is_deeper(value: object, levels: int) -> bool:
    """Whether lists and objects are nested deeper than this; no recursion, so no depth is too much."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in layer)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def types_of(table: pa.Table) -> dict[str, ColumnType | None]:
    """The columns of a chunk and their types; None where every value is null."""
    return {
        field.name: None if pa.types.is_null(field.type) else column_type(field) for field in table.schema
    }
