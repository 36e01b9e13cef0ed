"""Text in, better text out: cleaning, rewriting, translating."""

from collections.abc import Mapping

from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import GatedParams
from dataflow_assets.operators.llm.prompted import GatedOperator
from dataflow_assets.operators.llm.shipped import prompt_text
from dataflow_assets.operators.registry import register


class _TextParams(GatedParams):
    column: str = Field("text", min_length=1, description="The text column; `{text}` in the prompt.")
    output_column: str | None = Field(
        None, min_length=1, description="The column for the new text; default: in its place."
    )


class TextRewriter(GatedOperator):
    """One text column in, one text out, in one call; a subclass names its prompt."""

    Params = _TextParams
    params: _TextParams

    def aliases(self) -> Mapping[str, str]:
        """`text` stands for the text column."""
        return {"text": self.params.column}

    def words(self, row: Mapping[str, object]) -> dict[str, str]:
        """What the operator itself puts into the prompt."""
        return {}

    def writes(self) -> Schema:
        """The column of the new text."""
        return {self.params.output_column or self.params.column: "string"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The new text."""
        messages = self.messages(row, self.prompt_of(row, self.words(row)))
        text = await ask(self.call(messages), self.text_check(row))
        return {self.params.output_column or self.params.column: text}


@register
class CleanKnowledge(TextRewriter):
    """Makes a raw chunk readable: broken lines, navigation and noise out, facts and numbers kept.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (string), or `column` in its place. Fails a row without text as MissingValue, an answer that
    misses a gate as `gate:<name>`.

    Example:
        - {name: cleaned, type: clean_knowledge, params: {gates: {min_chars: 20, language: same}}}
    """

    name = "clean_knowledge"
    prompt_name = "clean_knowledge"


class _RewriteParams(_TextParams):
    style: str | None = Field(
        None,
        min_length=1,
        description="How the text shall be; `{style}` in the prompt. Default: shipped words.",
    )


@register
class Rewrite(TextRewriter):
    """Rewrites a text in a style, with the same meaning.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (string), or `column` in its place. Fails a row without text as MissingValue, an answer that
    misses a gate as `gate:<name>`.

    Example:
        - {name: plain, type: rewrite, params: {style: in short sentences, output_column: plain}}
    """

    name = "rewrite"
    prompt_name = "rewrite"
    pieces = ("rewrite.style",)
    fills = ("style",)
    Params = _RewriteParams
    params: _RewriteParams  # pyright: ignore[reportIncompatibleVariableOverride]

    def words(self, row: Mapping[str, object]) -> dict[str, str]:
        """The style, in the parameters' words or the shipped ones."""
        return {"style": self.params.style or prompt_text("rewrite.style", self.language(row))}


@register
class Refine(Rewrite):
    """Another name of `rewrite`.

    Grain, columns and errors are the same.

    Example:
        - {name: refined, type: refine, params: {column: text}}
    """

    name = "refine"


class _TranslateParams(_TextParams):
    to: str = Field(min_length=1, description="The language, in words, e.g. `English`; `{to}` in the prompt.")
    output_column: str | None = Field(
        "translation", min_length=1, description="The column for the translation; null: in place of the text."
    )


@register
class Translate(TextRewriter):
    """Translates a text; names, numbers, code and layout are kept.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (string). Fails a row without text as MissingValue, an answer that misses a gate as
    `gate:<name>`; `gates: {language: en}` checks the language of the translation.

    Example:
        - {name: english, type: translate, params: {to: English, gates: {language: en}}}
    """

    name = "translate"
    prompt_name = "translate"
    fills = ("to",)
    Params = _TranslateParams
    params: _TranslateParams  # pyright: ignore[reportIncompatibleVariableOverride]

    def words(self, row: Mapping[str, object]) -> dict[str, str]:
        """The language that is wanted."""
        return {"to": self.params.to}
