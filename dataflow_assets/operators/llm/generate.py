"""Makes columns by a prompt of the user: free text, or JSON of a schema."""

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property

from pydantic import Field, field_validator, model_validator

from dataflow_assets.batch import ColumnType, Schema
from dataflow_assets.operators.llm.conversation_input import ConversationOperator, ConversationParams
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import GatedParams, PromptParams, StructuredParams
from dataflow_assets.operators.llm.prompted import GatedOperator, Structured, StructuredOperator
from dataflow_assets.operators.llm.together import together
from dataflow_assets.operators.operator import RESERVED_COLUMNS
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Answer, CallFailed
from dataflow_assets.serving.structured import json_schema

_COLUMNS: dict[str, ColumnType] = {
    "string": "string",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
}
_INT64 = range(-(2**63), 2**63)


def _needs_something_to_say(params: PromptParams, messages_column: str | None) -> None:
    if params.template is None and messages_column is None:
        raise ValueError("give prompt, prompt_file or messages_column")


class _GenerateParams(GatedParams, ConversationParams):
    output_column: str = Field("generated", min_length=1, description="The column for the answer.")
    n: int = Field(1, ge=1, le=1000, description="Answers for each row; from 2 on the column is a JSON list.")

    @model_validator(mode="after")
    def _says_something(self) -> "_GenerateParams":
        _needs_something_to_say(self, self.messages_column)
        return self


@register
class Generate(GatedOperator, ConversationOperator):
    r"""Asks a model with your prompt, and keeps its answer in a column.

    Grain: one row in, one row out; order and ids unchanged. Reads the columns that `prompt` and
    `system` name, and `messages_column`. Writes `output_column`: string, or with `n` above 1 a JSON
    list of texts. White space around an answer and `<think>` blocks go. A null column fails the row
    as MissingValue before anything is sent; an answer that misses a gate as `gate:<name>`.

    Example:
        - {name: titled, type: generate, params: {prompt: "Give it a title:\n{text}", output_column: title}}
    """

    name = "generate"
    Params = _GenerateParams
    params: _GenerateParams

    def writes(self) -> Schema:
        """The column of the answer."""
        return {self.params.output_column: "string" if self.params.n == 1 else "json"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The answer, or the list of answers."""
        text = None if self.params.template is None else self.prompt_of(row, {})
        messages = self.messages(row, text, self.history(row))
        check = self.text_check(row)
        calls = [self.call(messages, sample=sample) for sample in range(self.params.n)]
        texts = await together([ask(call, check) for call in calls])
        return {self.params.output_column: texts[0] if self.params.n == 1 else texts}


with warnings.catch_warnings():  # pydantic still has an old method of this name
    warnings.simplefilter("ignore", UserWarning)

    class _GenerateStructuredParams(StructuredParams, GatedParams, ConversationParams):
        schema: dict[str, object] = Field(  # pyright: ignore[reportIncompatibleMethodOverride]
            description="JSON schema of an object, or the short form `{title: string, tags: [string], "
            "score: {type: integer, minimum: 1, maximum: 5}}`; each field becomes a column."
        )

        @field_validator("schema")
        @classmethod
        def _is_of_an_object(cls, schema: dict[str, object]) -> dict[str, object]:
            names = json_schema(schema).get("properties")
            if not isinstance(names, dict) or not names:
                raise ValueError(
                    "the schema is of no object with fields; expected `properties`, one a column"
                )
            if taken := [name for name in names if name in RESERVED_COLUMNS or not name]:
                raise ValueError(f"reserved column names: {', '.join(map(repr, taken))}")
            return schema

        @model_validator(mode="after")
        def _says_something(self) -> "_GenerateStructuredParams":
            _needs_something_to_say(self, self.messages_column)
            if self.repair and "repaired" in column_types(self.schema):
                raise ValueError("with `repair`, the column `repaired` is taken; call that field otherwise")
            return self


@register
class GenerateStructured(StructuredOperator, GatedOperator, ConversationOperator):
    r"""Asks a model with your prompt for JSON of a schema, and makes each of its fields a column.

    Grain: one row in, one row out; order and ids unchanged. Reads the columns that `prompt` and
    `system` name, and `messages_column`. Writes a column for each field: string, integer, number
    and boolean as such, all else as JSON; with `repair` also `repaired` (bool). The schema is sent
    with the call and said at the end of the prompt; values are checked and never converted. Rows
    fail as `json_parse`, `schema_invalid` or `gate:<name>` (gates look at the texts of the answer).

    Example:
        - name: facts
          type: generate_structured
          params:
            prompt: "Which product is this about, and how is it rated?\n\n{text}"
            schema: {product: string, rating: {type: integer, minimum: 1, maximum: 5}, tags: [string]}
    """

    name = "generate_structured"
    Params = _GenerateStructuredParams
    params: _GenerateStructuredParams

    def writes(self) -> Schema:
        """The fields of the schema, and the mark of mended JSON."""
        return {**self._types, **self.marks()}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The fields of the answer."""
        call = self.structured_call(row, self._schema, {}, self.history(row))
        values, repaired = await ask(call, self._check(row))
        return self.marked(values, repaired)

    @cached_property
    def _schema(self) -> dict[str, object]:
        return json_schema(self.params.schema)

    @cached_property
    def _types(self) -> Schema:
        return column_types(self._schema)

    def _check(self, row: Mapping[str, object]) -> Callable[[Answer], Structured]:
        valid, types = self.value_check(self._schema), self._types

        def check(answer: Answer) -> Structured:
            value, repaired = valid(answer)
            texts = [text for text in value.values() if isinstance(text, str)]
            for text in [*texts, "\n".join(texts)] if texts else ():
                self.gates.check(text, self.inputs(row), row)
            return Structured(
                {name: _fitting(value.get(name), types[name], answer) for name in types}, repaired
            )

        return check


def column_types(schema: Mapping[str, object]) -> Schema:
    """The column of each field of a schema: its type where it is simple, perhaps or null; else JSON."""
    properties = json_schema(schema).get("properties")
    assert isinstance(properties, dict)
    return {name: _column_type(field) for name, field in properties.items()}


def _column_type(field: object) -> ColumnType:
    kind = field.get("type") if isinstance(field, dict) else None
    if isinstance(kind, list):
        named = [each for each in kind if each != "null"]
        kind = named[0] if len(named) == 1 else None
    return _COLUMNS.get(kind, "json") if isinstance(kind, str) else "json"


def _fitting(value: object, kind: ColumnType, answer: Answer) -> object:
    """The value as its column holds it. Raises CallFailed `schema_invalid` for an integer beyond 64 bits."""
    if kind == "int64" and isinstance(value, int) and value not in _INT64:
        raise CallFailed(
            "schema_invalid",
            f"the answer does not fit the schema: found {value:.6g}, expected an integer of 64 bits",
            raw=answer.text,
        )
    return float(value) if kind == "float64" and isinstance(value, int) else value
