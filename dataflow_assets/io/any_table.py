"""What a user's own asset returns, as a table of the five column types."""

from collections.abc import Mapping, Sequence
from typing import cast

import pyarrow as pa

from dataflow_assets.batch import arrow_schema, infer_type, table_of, widen_schema
from dataflow_assets.errors import ConfigError, UnwritableValue
from dataflow_assets.sources.arrow_values import UnreadableType, check_type, column_of_arrow
from dataflow_assets.sources.columns import UnfitRows


def table_from(value: object) -> pa.Table:
    """The rows of a pyarrow Table, a pandas DataFrame (without its index) or a list of dicts.

    Raises ConfigError for anything else, UnwritableValue for a column or row that has no exact form.
    """
    if isinstance(value, pa.Table):
        return _typed(value)
    if _name_of(value) == "pandas.DataFrame":
        return _typed(pa.Table.from_pandas(value, preserve_index=False).replace_schema_metadata(None))
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(row, Mapping) for row in value)
    ):
        return _of_rows(cast("Sequence[Mapping[str, object]]", value))
    raise ConfigError(
        f"an asset returned {_name_of(value)}; expected a pyarrow Table, a pandas DataFrame or "
        "a list of dicts"
    )


def _name_of(value: object) -> str:
    """`pandas.DataFrame`, `polars.DataFrame`; of types of Python itself the name alone."""
    package = type(value).__module__.partition(".")[0]
    return type(value).__name__ if package == "builtins" else f"{package}.{type(value).__name__}"


def _typed(table: pa.Table) -> pa.Table:
    arrays, schema = [], {}
    for field, column in zip(table.schema, table.columns, strict=True):
        try:
            check_type(field.type)
            array, kind = column_of_arrow(column.combine_chunks())
        except UnreadableType as error:
            raise UnwritableValue(f"column {field.name!r}: {error}; convert it or leave it out") from error
        except UnfitRows as error:
            position, reason = next(iter(error.reasons.items()))
            raise UnwritableValue(f"column {field.name!r}, row {position + 1}: {reason}") from error
        schema[field.name] = kind or "string"
        arrays.append(array if kind else array.cast(pa.large_string()))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _of_rows(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    names = list(widen_schema({name: None for name in row} for row in rows))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return table_of(columns, {name: infer_type(values) or "string" for name, values in columns.items()})
