"""Classifies a text by a local model: quality, toxicity, language, topic."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.model_operator import ModelOperator, Texts, Values
from dataflow_assets.operators.models.model_params import TextColumnParams
from dataflow_assets.operators.models.text_encoder import Numbers, TextEncoder
from dataflow_assets.operators.registry import register


class _ClassifyWithModelParams(TextColumnParams):
    output_column: str = Field("label", min_length=1, description="The column for the label.")
    all_scores: bool = Field(False, description="Write the scores of all labels too.")


@register
class ClassifyWithModel(ModelOperator[TextEncoder]):
    """Adds the label that a local sequence-classification model gives a text, and its score.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (string: the likeliest label, by the model's own names), `<output_column>_score` (float64) and
    `<output_column>_truncated` (bool: the text was longer than `max_tokens`), with `all_scores` also
    `<output_column>_scores` (JSON: score by label). Scores are probabilities: of labels that exclude
    each other (softmax), or each for itself where the model's `problem_type` is
    `multi_label_classification` (sigmoid). A model with one output, as those that grade quality, gives
    that number itself as the score. A text without any token has no label: null. Null fails as
    MissingValue, a value that is not text as WrongType, a text too large for the device's memory as
    OutOfMemory. Drop rows afterwards by `filter_number` or `expression`. Needs the extra `models`.

    Example:
        - {name: rated, type: classify_with_model, params: {model: models/quality, output_column: quality}}
    """

    name = "classify_with_model"
    Params = _ClassifyWithModelParams
    params: _ClassifyWithModelParams

    def needed_columns(self) -> list[str]:
        """The text column."""
        return [self.params.column]

    def writes(self) -> Schema:
        """The label and its score."""
        out = self.params.output_column
        scores: Schema = {f"{out}_scores": "json"} if self.params.all_scores else {}
        return {out: "string", f"{out}_score": "float64", f"{out}_truncated": "bool", **scores}

    def load(self) -> TextEncoder:
        """The classifier."""
        return TextEncoder("AutoModelForSequenceClassification", self.params, _logits)

    def results(
        self, model: TextEncoder, rows: Sequence[Texts], row_ids: Sequence[str]
    ) -> list[Values | RowError]:
        """The label of each row, and its score."""
        read = model.read([text or "" for (text,) in rows])
        return [
            logits if isinstance(logits, RowError) else self._values(model, logits, text.is_cut)
            for logits, text in zip(model.numbers(read), read, strict=True)
        ]

    def _values(self, model: TextEncoder, logits: Numbers | None, is_cut: bool) -> Values:
        width = len(self.writes())
        if logits is None:
            return (None, None, is_cut, None)[:width]
        scores = dict(zip(_labels(model.config), _scores(model.config, logits), strict=True))
        best = max(scores, key=lambda label: scores[label])
        return (best, scores[best], is_cut, scores)[:width]


def _logits(output: Any, mask: Any) -> Any:
    return output.logits


def _labels(config: Any) -> list[str]:
    return [str(config.id2label[number]) for number in range(config.num_labels)]


def _scores(config: Any, logits: Numbers) -> Numbers:
    import torch

    numbers = torch.tensor(logits, dtype=torch.float64)
    if len(logits) == 1:
        return logits
    if config.problem_type == "multi_label_classification":
        return numbers.sigmoid().tolist()
    return numbers.softmax(0).tolist()
