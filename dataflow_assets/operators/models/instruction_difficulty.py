"""Scores how much an instruction helps a language model to foresee its answer."""

from collections.abc import Sequence
from string import Formatter
from typing import NamedTuple

from pydantic import Field, field_validator

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.language_model import Asked, LanguageModel
from dataflow_assets.operators.models.model_operator import ModelOperator, Texts, Values, or_problem
from dataflow_assets.operators.models.model_params import ReadingParams
from dataflow_assets.operators.models.perplexity import perplexity_of
from dataflow_assets.operators.models.texts import plain_tokens
from dataflow_assets.operators.registry import register

_ALPACA = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the "
    "request.\n\n### Instruction:\n{instruction}\n\n### Response:"
)
_ALPACA_WITH_INPUT = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:"
)


class _ScoreIfdParams(ReadingParams):
    instruction_column: str = Field("instruction", min_length=1, description="What was asked.")
    input_column: str | None = Field(
        None, min_length=1, description="Further text to the instruction; rows may lack it."
    )
    answer_column: str = Field("answer", min_length=1, description="What was answered.")
    output_column: str = Field("ifd", min_length=1, description="The column for the score.")
    template: str = Field(
        _ALPACA,
        description="The text before the answer, with `{instruction}`; `{{` is a brace. Default: Alpaca's.",
    )
    template_with_input: str = Field(
        _ALPACA_WITH_INPUT, description="The same for rows with an input, with `{input}` too."
    )

    @field_validator("template")
    @classmethod
    def _has_an_instruction(cls, template: str) -> str:
        return _checked(template, {"instruction"})

    @field_validator("template_with_input")
    @classmethod
    def _has_both(cls, template: str) -> str:
        return _checked(template, {"instruction", "input"})


def _checked(template: str, names: set[str]) -> str:
    """The template. Raises ValueError where its fields are not these."""
    found = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    if found != names:
        wanted = " and ".join(f"{{{name}}}" for name in sorted(names))
        raise ValueError(f"expected the fields {wanted}, found {sorted(found) or 'none'}")
    return template


class _Pair(NamedTuple):
    """The tokens of a row's prompt and answer, as much as the model can look at."""

    prompt: list[int]
    answer: list[int]
    is_cut: bool


@register
class ScoreIfd(ModelOperator[LanguageModel]):
    """Adds the IFD: perplexity of the answer given its instruction, over perplexity of the answer alone.

    Grain: one row in, one row out; order and ids unchanged. Reads `instruction_column`, `input_column`,
    `answer_column`. Writes `output_column` (float64), `<output_column>_given` and
    `<output_column>_alone` (float64: the two perplexities), `<output_column>_tokens` (int64: tokens of
    the answer that were read) and `<output_column>_truncated` (bool: instruction and answer together
    were longer than `max_tokens`; the end of the answer does not count). Below 1 the instruction helps;
    at 1 or more it does not, and such rows are usually dropped (`filter_number`); of the others the
    highest are the most instructive. The score is null where the answer has less than two tokens, as
    the empty one, or where the instruction leaves no room for any. Null in either column fails as
    MissingValue, a value that is not text as WrongType, too large a row as OutOfMemory. Source of the
    rule: Superfiltering (Li et al. 2024), with GPT-2; the answer is made into tokens by itself, so
    that both perplexities are of the same tokens. Needs the extra `models`.

    Example:
        - {name: scored, type: score_ifd, params: {model: openai-community/gpt2, answer_column: output}}
    """

    name = "score_ifd"
    Params = _ScoreIfdParams
    params: _ScoreIfdParams

    def needed_columns(self) -> list[str]:
        """Instruction and answer."""
        return [self.params.instruction_column, self.params.answer_column]

    def optional_columns(self) -> list[str]:
        """The input."""
        return [self.params.input_column] if self.params.input_column else []

    def writes(self) -> Schema:
        """The score, and what it was made of."""
        out = self.params.output_column
        return {
            out: "float64",
            f"{out}_given": "float64",
            f"{out}_alone": "float64",
            f"{out}_tokens": "int64",
            f"{out}_truncated": "bool",
        }

    def load(self) -> LanguageModel:
        """The language model."""
        return LanguageModel(self.params)

    def results(
        self, model: LanguageModel, rows: Sequence[Texts], row_ids: Sequence[str]
    ) -> list[Values | RowError]:
        """The values of each row; both sequences of all rows go through the model together."""
        pairs = self._pairs(model, [dict(zip(self.reads(), row, strict=True)) for row in rows])
        begin = model.begin_tokens
        given = [Asked([*pair.prompt, *pair.answer], len(pair.prompt)) for pair in pairs]
        alone = [Asked([*begin, *pair.answer]) for pair in pairs]
        losses = model.mean_losses([*given, *alone])
        return [
            _values(pair, *both)
            for pair, *both in zip(pairs, losses[: len(pairs)], losses[len(pairs) :], strict=True)
        ]

    def _pairs(self, model: LanguageModel, rows: Sequence[dict[str, str | None]]) -> list[_Pair]:
        begin, limit = model.begin_tokens, model.max_tokens
        prompts = plain_tokens(model.tokenizer, [self._prompt(row) for row in rows], limit - len(begin))
        answers = [row[self.params.answer_column] or "" for row in rows]
        pairs = []
        for prompt, answer in zip(prompts, plain_tokens(model.tokenizer, answers, limit), strict=True):
            before = [*begin, *prompt.tokens]
            room = limit - len(before)
            is_cut = prompt.is_cut or answer.is_cut or len(answer.tokens) > room
            pairs.append(_Pair(before, answer.tokens[:room], is_cut))
        return pairs

    def _prompt(self, row: dict[str, str | None]) -> str:
        instruction = row[self.params.instruction_column]
        given = row[self.params.input_column] if self.params.input_column else None
        if given and given.strip():
            return self.params.template_with_input.format(instruction=instruction, input=given)
        return self.params.template.format(instruction=instruction)


def _values(pair: _Pair, given: object, alone: object) -> Values | RowError:
    above, below = perplexity_of(given), perplexity_of(alone)
    score = None if above is None or below is None else above / below
    values = (score, above, below, len(pair.answer), pair.is_cut)
    return or_problem(given if isinstance(given, RowError) else alone, values)
