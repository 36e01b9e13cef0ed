"""Answers instructions."""

from collections.abc import Mapping

from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.conversation_input import ConversationOperator, ConversationParams
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import GatedParams
from dataflow_assets.operators.llm.prompted import GatedOperator
from dataflow_assets.operators.llm.shipped import prompt_template
from dataflow_assets.operators.llm.template import Template
from dataflow_assets.operators.registry import register
from dataflow_assets.text.language import Language

_WITH_INPUT = "answer.with_input"


class _AnswerParams(GatedParams, ConversationParams):
    instruction_column: str = Field(
        "instruction", min_length=1, description="What is to be answered; `{instruction}` in the prompt."
    )
    input_column: str | None = Field(
        None, min_length=1, description="Further text to it, which may be missing; `{input}` in the prompt."
    )
    output_column: str = Field("answer", min_length=1, description="The column for the answer.")


@register
class AnswerInstruction(GatedOperator, ConversationOperator):
    """Answers the instruction of each row, with its input where there is one.

    Grain: one row in, one row out; order and ids unchanged. Reads `instruction_column`,
    `input_column`, `messages_column` (the conversation before). Writes `output_column` (string).
    Fails a row without instruction as MissingValue, an answer that misses a gate as `gate:<name>`.

    Example:
        - {name: answered, type: answer, params: {instruction_column: question, max_tokens: 1024}}
    """

    name = "answer"
    prompt_name = "answer"
    pieces = (_WITH_INPUT,)
    Params = _AnswerParams
    params: _AnswerParams

    def aliases(self) -> Mapping[str, str]:
        """`instruction` and `input` stand for their columns."""
        given = {"instruction": self.params.instruction_column}
        return {**given, "input": self.params.input_column} if self.params.input_column else given

    def reads(self) -> list[str]:
        """The columns of the prompt, and that of the input."""
        own = [self.params.input_column] if self.params.input_column else []
        return list(dict.fromkeys([*super().reads(), *own]))

    def writes(self) -> Schema:
        """The answer's column."""
        return {self.params.output_column: "string"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The answer."""
        text = self._filled(self._template(row), row, {})
        messages = self.messages(row, text, self.history(row))
        return {self.params.output_column: await ask(self.call(messages), self.text_check(row))}

    def _template(self, row: Mapping[str, object]) -> Template:
        """The prompt of the parameters, else the shipped one with or without input."""
        if self.params.template is not None:
            return self.params.template
        language: Language = self.language(row)
        has_input = self.params.input_column and str(row.get(self.params.input_column) or "").strip()
        return prompt_template(_WITH_INPUT if has_input else self.prompt_name, language)
