"""Turns conversations of one format into another, or into plain text."""

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from dataflow_assets.batch import Schema, schema_of, values_of
from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.conversion.chat_formats import FORMATS, FormatName
from dataflow_assets.operators.conversion.turns import Role, Turn, check_order
from dataflow_assets.operators.operator import Outcome, Params, RowErrors, RowOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import rows_with

_PLACE = "{content}"
_TEMPLATES: dict[Role, str] = {
    "system": "{content}\n\n",
    "user": "User: {content}\n",
    "assistant": "Assistant: {content}\n",
}


class _ConvertChatParams(Params):
    read: FormatName = Field(description="The format of the rows.")
    write: Literal[FormatName, "text"] = Field(description="The format that they get; `text` is plain text.")
    templates: dict[Role, str] = Field(
        _TEMPLATES,
        description="For `text`: what a turn of each role becomes; `{content}` is its text.",
    )
    order: Literal["alternating", "any"] = Field(
        "alternating",
        description="Whether user and assistant must take turns, from a user to an assistant; or `any`.",
    )

    @field_validator("templates")
    @classmethod
    def _hold_the_content(cls, templates: dict[Role, str]) -> dict[Role, str]:
        if wrong := [role for role, template in templates.items() if template.count(_PLACE) != 1]:
            raise ValueError(f"the template of {wrong[0]} must hold {_PLACE} once")
        return templates

    @model_validator(mode="after")
    def _templates_are_used(self) -> "_ConvertChatParams":
        if self.write != "text" and "templates" in self.model_fields_set:
            raise ValueError("templates belong to `write: text`")
        return self


@register
class ConvertChat(RowOperator):
    """Turns conversations into another format: messages, ShareGPT, Alpaca, ChatML, columns, plain text.

    Grain: one row in, one row out; order and ids unchanged. The columns of the format that is read go,
    those of the other come, all others stay:

    * `messages`: `messages` (JSON list of `role`, `content`), as chat templates take it.
    * `sharegpt`: `conversations` (JSON list of `from`, `value`; human or user, gpt or assistant, system).
    * `alpaca`: `instruction`, `input`, `output`, and `system` (optional). When read, a line break joins
      `instruction` and `input`; when written, `input` is empty.
    * `chatml`: `text` with `<|im_start|>role`, a line break, the text and `<|im_end|>`.
    * `columns`: `question`, `answer`, and `system` (optional).
    * `text` (written only): `text`, each turn by the template of its role, white space at the end taken away.

    Nothing is guessed or left out. A row fails as MissingValue for a turn without a text or role, as
    WrongType for an unknown role, a field that the other format cannot hold (`tool_calls`, `name`), turns
    out of order, several exchanges where one fits (alpaca, columns), and a mark of ChatML within a text.

    Formats: OpenAI chat completions, FastChat (ShareGPT), Stanford Alpaca, OpenAI ChatML.

    Example:
        - {name: messages, type: convert_chat, params: {read: sharegpt, write: messages}}
    """

    name = "convert_chat"
    Params = _ConvertChatParams
    params: _ConvertChatParams

    def reads(self) -> list[str]:
        """The columns that the format must have."""
        return list(FORMATS[self.params.read].columns)

    def writes(self) -> Schema:
        """The columns of the new format."""
        return {"text": "string"} if self.params.write == "text" else FORMATS[self.params.write].all_columns

    def output_schema(self, schema: Schema) -> Schema:
        """What is no part of the old format, and the new one."""
        old = FORMATS[self.params.read].all_columns
        return {**{name: kind for name, kind in schema.items() if name not in old}, **self.writes()}

    def apply(self, table: pa.Table) -> Outcome:
        """The conversations in their new format."""
        form = FORMATS[self.params.read]
        names = [name for name in form.all_columns if name in table.column_names]
        columns = [values_of(table, name) for name in names]
        errors, positions, rows = RowErrors.none(), list[int](), list[dict[str, object]]()
        for position, values in enumerate(zip(*columns, strict=True)):
            try:
                turns = form.read(dict(zip(names, values, strict=True)))
                if self.params.order == "alternating":
                    check_order(turns)
                rows.append(self._written(turns))
            except (MissingValue, WrongType) as error:
                errors.add(position, error)
                continue
            positions.append(position)
        new = {name: [row[name] for row in rows] for name in self.writes()}
        kept = rows_with(table, positions, new, self.output_schema(schema_of(table)))
        return Outcome(kept, None, errors.failed_rows(table))

    def _written(self, turns: Sequence[Turn]) -> dict[str, object]:
        if not turns:
            raise MissingValue("missing turns: the conversation is empty")
        for turn in turns:
            _check_unicode(turn.text)
        if self.params.write != "text":
            return FORMATS[self.params.write].write(turns)
        return {"text": "".join(map(self._as_text, turns)).rstrip()}

    def _as_text(self, turn: Turn) -> str:
        template = self.params.templates.get(turn.role)
        if template is None:
            raise WrongType(f"wrong type: `templates` has none for a turn of the {turn.role}")
        return template.replace(_PLACE, turn.text)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise WrongType(
            f"wrong type: a turn holds a lone surrogate at character {error.start}, which is no text; "
            "`fix_unicode` repairs it"
        ) from None
