"""Scores a text by how well a language model foresees it."""

import math
from collections.abc import Sequence

from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.language_model import Asked, LanguageModel
from dataflow_assets.operators.models.model_operator import ModelOperator, Texts, Values, or_problem
from dataflow_assets.operators.models.model_params import TextColumnParams
from dataflow_assets.operators.models.texts import plain_tokens
from dataflow_assets.operators.registry import register


class _ScorePerplexityParams(TextColumnParams):
    output_column: str = Field("perplexity", min_length=1, description="The column for the perplexity.")


@register
class ScorePerplexity(ModelOperator[LanguageModel]):
    """Adds the perplexity of a text under a local language model: low for what the model foresees.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (float64: exp of the mean of -log p over all tokens but the first, natural logarithm),
    `<output_column>_tokens` (int64: the tokens that were read) and `<output_column>_truncated` (bool:
    the text was longer than `max_tokens`, its rest does not count). A text of less than two tokens, as
    the empty one, has no perplexity: null. Null fails as MissingValue, a value that is not text as
    WrongType, a text too large for the device's memory as OutOfMemory. Source of the rule: Jelinek et
    al. 1977; as a filter CCNet (Wenzek et al. 2020). Needs the extra `models`.

    Example:
        - {name: scored, type: score_perplexity, params: {model: openai-community/gpt2}}
    """

    name = "score_perplexity"
    Params = _ScorePerplexityParams
    params: _ScorePerplexityParams

    def needed_columns(self) -> list[str]:
        """The text column."""
        return [self.params.column]

    def writes(self) -> Schema:
        """The perplexity, and of how much text it is."""
        out = self.params.output_column
        return {out: "float64", f"{out}_tokens": "int64", f"{out}_truncated": "bool"}

    def load(self) -> LanguageModel:
        """The language model."""
        return LanguageModel(self.params)

    def results(
        self, model: LanguageModel, rows: Sequence[Texts], row_ids: Sequence[str]
    ) -> list[Values | RowError]:
        """The values of each row."""
        begin = model.begin_tokens
        texts = [text or "" for (text,) in rows]
        read = plain_tokens(model.tokenizer, texts, model.max_tokens - len(begin))
        losses = model.mean_losses([Asked([*begin, *text.tokens]) for text in read])
        return [
            or_problem(loss, (perplexity_of(loss), len(text.tokens), text.is_cut))
            for loss, text in zip(losses, read, strict=True)
        ]


def perplexity_of(loss: object) -> float | None:
    """The exponential of a mean loss; infinite where it is too large, None where there is none."""
    if not isinstance(loss, float):
        return None
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
