"""Chooses and renames columns."""

from collections import Counter

import pyarrow as pa
from pydantic import Field, model_validator

from dataflow_assets.batch import ROW_ID, Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import RESERVED_COLUMNS, Outcome, Params, RowOperator
from dataflow_assets.operators.registry import register


class _SelectColumnsParams(Params):
    keep: list[str] | None = Field(
        None, min_length=1, description="The columns that stay, in this order; `row_id` always stays."
    )
    drop: list[str] | None = Field(None, min_length=1, description="The columns that go.")

    @model_validator(mode="after")
    def _one_of_them(self) -> "_SelectColumnsParams":
        if (self.keep is None) == (self.drop is None):
            raise ValueError("give exactly one of keep and drop")
        if twice := [name for name, times in Counter(self.keep or self.drop).items() if times > 1]:
            raise ValueError(f"named twice: {', '.join(twice)}")
        if self.drop and ROW_ID in self.drop:
            raise ValueError(f"{ROW_ID!r} goes with its row to the end and cannot be dropped")
        return self


@register
class SelectColumns(RowOperator):
    """Keeps the named columns, or all but the named ones; `row_id` always stays.

    Grain: one row in, one row out; order, ids and values unchanged. Reads the named columns, writes
    none. With `keep`, columns come in the order given, `row_id` first unless it is named.
    Raises nothing on rows; MissingColumn is told before the run.

    Example:
        - {name: slim, type: select_columns, params: {keep: [id, text]}}
    """

    name = "select_columns"
    releases_gil = True
    Params = _SelectColumnsParams
    params: _SelectColumnsParams

    def reads(self) -> list[str]:
        """The named columns."""
        return list(self.params.keep or self.params.drop or [])

    def output_schema(self, schema: Schema) -> Schema:
        """The columns that stay, with their types."""
        if self.params.drop:
            return {name: kind for name, kind in schema.items() if name not in self.params.drop}
        kept = self.params.keep or []
        if ROW_ID in schema and ROW_ID not in kept:
            kept = [ROW_ID, *kept]
        return {name: schema[name] for name in kept if name in schema}

    def apply(self, table: pa.Table) -> Outcome:
        """The same rows with fewer columns."""
        if self.params.drop:
            return Outcome(table.drop_columns(self.params.drop))
        kept = self.params.keep or []
        return Outcome(table.select(kept if ROW_ID in kept else [ROW_ID, *kept]))


class _RenameColumnsParams(Params):
    columns: dict[str, str] = Field(min_length=1, description="The new name of each column: `{old: new}`.")

    @model_validator(mode="after")
    def _names_are_free(self) -> "_RenameColumnsParams":
        for old, new in self.columns.items():
            if old == ROW_ID:
                raise ValueError(f"{ROW_ID!r} goes with its row to the end and cannot be renamed")
            if new in RESERVED_COLUMNS or not new:
                reserved = ", ".join(RESERVED_COLUMNS)
                raise ValueError(f"a column cannot be called {new!r}; reserved: {reserved}")
        if twice := [name for name, times in Counter(self.columns.values()).items() if times > 1]:
            raise ValueError(f"two columns would be called {', '.join(map(repr, twice))}")
        return self


@register
class RenameColumns(RowOperator):
    """Gives columns new names; two may swap theirs.

    Grain: one row in, one row out; order, ids, values and the places of the columns unchanged. Reads
    the old names, writes the new ones. Raises ConfigError, before any work, where a new name is
    reserved or that of another column.

    Example:
        - {name: renamed, type: rename_columns, params: {columns: {content: text}}}
    """

    name = "rename_columns"
    releases_gil = True
    Params = _RenameColumnsParams
    params: _RenameColumnsParams

    def reads(self) -> list[str]:
        """The old names."""
        return list(self.params.columns)

    def output_schema(self, schema: Schema) -> Schema:
        """The same types under the new names. Raises ConfigError for a name that is taken."""
        names = [self._new_name(name) for name in schema]
        if taken := [name for name, times in Counter(names).items() if times > 1]:
            raise ConfigError(
                f"operator {self.name!r}: the input already has a column {', '.join(map(repr, taken))}; "
                "rename that one too, or drop it with `select_columns`"
            )
        return dict(zip(names, schema.values(), strict=True))

    def touched(self, schema: Schema) -> set[str]:
        """The new names: also of columns that swap theirs."""
        return set(self.params.columns.values())

    def apply(self, table: pa.Table) -> Outcome:
        """The same rows under the new names."""
        return Outcome(table.rename_columns([self._new_name(name) for name in table.column_names]))

    def _new_name(self, name: str) -> str:
        return self.params.columns.get(name, name)
