"""Operators that the tests of pipelines use, so that these do not hang on the built-in ones."""

from typing import Literal

import pyarrow as pa
from pydantic import Field, SecretStr, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import ColumnParams, Outcome, Params, RowOperator, TextMapper
from dataflow_assets.operators.registry import register


class SuffixParams(ColumnParams):
    suffix: str = ""


@register
class AddSuffix(TextMapper):
    name = "made_suffix"
    Params = SuffixParams

    def edit(self, text: str) -> str:
        return text + self.params.suffix


class ChunkParams(ColumnParams):
    chunk_size: int = Field(ge=1)
    overlap: int = Field(default=0, ge=0)
    ratio: float = 0.5
    mode: Literal["hard", "soft"] = "hard"
    strip: bool = True

    @model_validator(mode="after")
    def _ends(self) -> "ChunkParams":
        if self.overlap >= self.chunk_size:
            raise ValueError("overlap must be < chunk_size")
        return self


class Unchanged(RowOperator):
    def apply(self, table: pa.Table) -> Outcome:
        return Outcome(table)


@register
class Chunk(Unchanged):
    name = "made_chunk"
    splits = True
    Params = ChunkParams

    def reads(self) -> list[str]:
        return [self.params.column]


class AnswerParams(Params):
    input_key: str
    output_key: str
    api_key: SecretStr = SecretStr("")
    overwrite: bool = False


@register
class Answer(Unchanged):
    name = "made_answer"
    Params = AnswerParams

    def reads(self) -> list[str]:
        return [self.params.input_key]

    def writes(self) -> Schema:
        return {self.params.output_key: "string"}


class ShapeParams(Params):
    drop: list[str] = Field(default_factory=list)
    rename: dict[str, str] = Field(default_factory=dict)


@register
class Shape(Unchanged):
    """Drops and renames columns."""

    name = "made_shape"
    Params = ShapeParams

    def reads(self) -> list[str]:
        return [*self.params.drop, *self.params.rename]

    def output_schema(self, schema: Schema) -> Schema:
        kept = {name: kind for name, kind in schema.items() if name not in self.params.drop}
        return {self.params.rename.get(name, name): kind for name, kind in kept.items()}


@register
class Broken(Unchanged):
    """Cannot say its columns."""

    name = "made_broken"

    def output_schema(self, schema: Schema) -> Schema:
        raise KeyError("nowhere")


@register
class Refusing(Unchanged):
    """Cannot be made."""

    name = "made_refusing"

    def __init__(self, params: Params | None = None) -> None:
        raise ConfigError("no service at localhost:1")


@register
class Crashing(Unchanged):
    """Raises something else when it is made."""

    name = "made_crashing"

    def __init__(self, params: Params | None = None) -> None:
        raise ZeroDivisionError("by zero")
