"""Joins several columns into one text."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from dataflow_assets.batch import Schema, json_text, values_of, with_column
from dataflow_assets.errors import MissingValue, RowError, WrongType
from dataflow_assets.operators.operator import (
    RESERVED_COLUMNS,
    Outcome,
    Params,
    RowErrors,
    RowOperator,
    split_by_reason,
)
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import is_unicode

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class _MergeColumnsParams(Params):
    to: str = Field(min_length=1, description="The column that is written; it may be one of those merged.")
    columns: list[str] | None = Field(None, min_length=1, description="The columns to join, in this order.")
    separator: str = Field("\n", description="What stands between two columns.")
    template: str | None = Field(
        None, description="In place of `columns`: a text with `{column}` in it; `{{` is a brace."
    )
    on_null: Literal["fail", "skip", "reject"] = Field(
        "fail",
        description="What becomes of a row with a null: `fail`; `skip` leaves the column and its separator "
        "out, in a template it is empty; `reject` drops the row as `missing_text`.",
    )

    @field_validator("to")
    @classmethod
    def _is_free(cls, to: str) -> str:
        if to in RESERVED_COLUMNS:
            raise ValueError(f"a column cannot be called {to!r}; reserved: {', '.join(RESERVED_COLUMNS)}")
        return to

    @model_validator(mode="after")
    def _one_of_them(self) -> "_MergeColumnsParams":
        if (self.columns is None) == (self.template is None):
            raise ValueError("give exactly one of columns and template")
        if self.template is not None and not any(is_column for _, is_column in _parts(self.template)):
            raise ValueError(f"the template {self.template!r} names no column, e.g. {{title}}")
        return self


@register
class MergeColumns(RowOperator):
    r"""Joins several columns into one text, by a separator or by a template.

    Grain: one row in, one row out; order and ids unchanged. Reads the columns that `columns` or
    `template` name (any type: texts as they are, all else as JSON writes it, e.g. `1.5`, `true`). Writes
    `to` (string). A null fails its row as MissingValue, unless `on_null` says otherwise; a lone
    surrogate in a JSON column as WrongType, as do NaN and infinity. Drop the merged columns with
    `select_columns`.

    Example:
        - {name: whole, type: merge_columns, params: {to: text, template: "# {title}\n\n{body}"}}
    """

    name = "merge_columns"
    Params = _MergeColumnsParams
    params: _MergeColumnsParams

    def reads(self) -> list[str]:
        """The columns that are joined."""
        named = self.params.columns or [
            part for part, is_column in _parts(self.params.template or "") if is_column
        ]
        return list(dict.fromkeys(named))

    def writes(self) -> Schema:
        """The joined text."""
        return {self.params.to: "string"}

    def apply(self, table: pa.Table) -> Outcome:
        """The rows with the joined text."""
        errors: dict[int, RowError] = {}
        reasons: list[str | None] = [None] * table.num_rows
        texts = {name: self._texts(table, name, errors, reasons) for name in self.reads()}
        merged = pa.array(self._merged(texts), pa.large_string())
        result = with_column(table, self.params.to, "string", merged)
        why, failed = pa.array(reasons, pa.large_string()), RowErrors(list(errors), list(errors.values()))
        outcome = split_by_reason(table, why, failed.in_order())
        return outcome._replace(kept=split_by_reason(result, why, failed).kept)

    def _texts(
        self, table: pa.Table, name: str, errors: dict[int, RowError], reasons: list[str | None]
    ) -> list[str | None]:
        """The column as texts; notes the rows that fail, and why others go."""
        texts: list[str | None] = []
        for position, value in enumerate(values_of(table, name)):
            text, problem = _as_text(name, value)
            if problem is not None:
                errors.setdefault(position, problem)
            elif text is None and self.params.on_null == "fail":
                missing = f"missing {name}: the row has no value in column {name!r}"
                errors.setdefault(position, MissingValue(missing))
            elif text is None and self.params.on_null == "reject":
                reasons[position] = "missing_text"
            texts.append(text)
        return texts

    def _merged(self, texts: Mapping[str, Sequence[str | None]]) -> list[str]:
        """The joined text of each row; a null is left out."""
        if self.params.columns:
            rows = zip(*(texts[name] for name in self.params.columns), strict=True)
            return [self.params.separator.join(text for text in row if text is not None) for row in rows]
        parts = _parts(self.params.template or "")
        sides = [texts[part] if is_column else itertools.repeat(part) for part, is_column in parts]
        return ["".join(text or "" for text in row) for row in zip(*sides, strict=False)]


def _as_text(name: str, value: object) -> tuple[str | None, WrongType | None]:
    """A value as it is joined, or why it cannot be."""
    if value is None or isinstance(value, str):
        if value is not None and not is_unicode(value):
            problem = f"wrong type: column {name!r} holds a lone surrogate; `fix_unicode` repairs it"
            return None, WrongType(problem)
        return value, None
    try:
        return json_text(value), None
    except ValueError as error:
        return None, WrongType(f"wrong type: column {name!r} holds {value}; {error}")


def _parts(template: str) -> Sequence[tuple[str, bool]]:
    """The template as texts and the names of columns. Raises ValueError for a single brace."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for found in _PLACE.finditer(template):
        parts.append((template[end : found.start()], False))
        end = found.end()
        if found[1]:
            parts.append((found[1], True))
        elif found[0] in ("{{", "}}"):
            parts.append((found[0][0], False))
        else:
            raise ValueError(f"a brace at character {found.start()} of the template: write {{{{ for a brace")
    return [*parts, (template[end:], False)]
