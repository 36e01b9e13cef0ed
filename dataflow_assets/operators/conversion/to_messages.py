"""Puts columns together as the rows that training takes: messages, ShareGPT or Alpaca."""

from typing import Literal

import pyarrow as pa
from pydantic import Field, field_validator

from dataflow_assets.batch import ROW_ID, Schema, schema_of, values_of
from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.conversion.chat_formats import FORMATS
from dataflow_assets.operators.conversion.turns import Turn
from dataflow_assets.operators.operator import Outcome, Params, RowErrors, RowOperator, unusable_text
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import rows_with


class _ToMessagesParams(Params):
    user: str = Field("question", min_length=1, description="The column of what the user says.")
    assistant: str = Field("answer", min_length=1, description="The column of what the model shall say.")
    system: str | None = Field(None, description="The text of a system message.")
    format: Literal["messages", "sharegpt", "alpaca"] = Field(
        "messages", description="`messages` (chat templates), `sharegpt` or `alpaca`."
    )
    keep: list[str] = Field([], description="Columns that stay beside it; all others go.")

    @field_validator("system")
    @classmethod
    def _says_something(cls, system: str | None) -> str | None:
        if system is not None and not system.strip():
            raise ValueError("it is blank; leave it out for rows without a system message")
        return system


@register
class ToMessages(RowOperator):
    """Puts a question and its answer together as a training row; other columns go, unless kept.

    Grain: one row in, one row out; order and ids unchanged. Reads `user`, `assistant` (strings) and
    `keep`. Writes, by `format`: `messages` (JSON list of `role` and `content`), `conversations` (JSON
    list of `from` and `value`), or `instruction`, `input` (empty) and `output`. Fails a row that lacks
    a text or has a blank one as MissingValue, a value that is no text as WrongType.

    Example:
        - {name: formatted, type: to_messages, params: {user: question, assistant: answer, keep: [lang]}}
    """

    name = "to_messages"
    version = "2"
    Params = _ToMessagesParams
    params: _ToMessagesParams

    def reads(self) -> list[str]:
        """Both texts, and what stays."""
        return list(dict.fromkeys([self.params.user, self.params.assistant, *self.params.keep]))

    def writes(self) -> Schema:
        """The columns of the format."""
        return FORMATS[self.params.format].columns

    def output_schema(self, schema: Schema) -> Schema:
        """The row's id, what is kept, and the columns of the format."""
        kept: Schema = {
            name: kind for name, kind in schema.items() if name == ROW_ID or name in self.params.keep
        }
        return {**kept, **self.writes()}

    def apply(self, table: pa.Table) -> Outcome:
        """The rows in their new form."""
        errors = RowErrors.none()
        rows: list[dict[str, object]] = []
        positions: list[int] = []
        asked, answered = values_of(table, self.params.user), values_of(table, self.params.assistant)
        for position, pair in enumerate(zip(asked, answered, strict=True)):
            try:
                rows.append(self._row(*map(_text, self._names, pair)))
                positions.append(position)
            except (MissingValue, WrongType) as error:
                errors.add(position, error)
        new = {name: [row[name] for row in rows] for name in self.writes()}
        kept = rows_with(table, positions, new, self.output_schema(schema_of(table)))
        return Outcome(kept, None, errors.failed_rows(table))

    @property
    def _names(self) -> tuple[str, str]:
        return self.params.user, self.params.assistant

    def _row(self, user: str, assistant: str) -> dict[str, object]:
        system = self.params.system
        if self.params.format == "alpaca":
            instruction = user if system is None else f"{system}\n\n{user}"
            return {"instruction": instruction, "input": "", "output": assistant}
        said = [Turn("user", user), Turn("assistant", assistant)]
        return FORMATS[self.params.format].write(said if system is None else [Turn("system", system), *said])


def _text(name: str, value: object) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise MissingValue(f"missing {name}: the row has no text in column {name!r}")
    if (error := unusable_text(name, value)) is not None:
        raise error
    return str(value)
