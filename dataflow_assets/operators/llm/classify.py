"""Gives each row one of the labels."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import Field, field_validator

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import StructuredParams
from dataflow_assets.operators.llm.prompted import Structured, StructuredOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Answer


class _ClassifyParams(StructuredParams):
    column: str = Field("text", min_length=1, description="The text column; `{text}` in the prompt.")
    labels: list[str] | dict[str, str] = Field(
        description="The labels, or each with its meaning; `{labels}` in the prompt."
    )
    output_column: str = Field("label", min_length=1, description="The column for the label.")

    @field_validator("labels")
    @classmethod
    def _can_be_chosen(cls, labels: list[str] | dict[str, str]) -> list[str] | dict[str, str]:
        if len(labels) < 2 or len(set(labels)) < len(labels) or any(not label.strip() for label in labels):
            raise ValueError("expected at least two labels, each once and not blank")
        return labels


@register
class Classify(StructuredOperator):
    """Gives each text one of the labels; any other answer fails the row.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (string), with `repair` also `repaired` (bool). An answer that is the bare label is taken too, also in
    another case where it can be one label only. Fails a row without text as MissingValue, an answer as
    `json_parse` or, where it is none of the labels, `schema_invalid`.

    Example:
        - {name: sorted, type: classify, params: {labels: {code: program text, prose: all else}}}
    """

    name = "classify"
    version = "2"
    prompt_name = "classify"
    fills = ("labels",)
    Params = _ClassifyParams
    params: _ClassifyParams

    def aliases(self) -> Mapping[str, str]:
        """`text` stands for the text column."""
        return {"text": self.params.column}

    def writes(self) -> Schema:
        """The label."""
        return {self.params.output_column: "string", **self.marks()}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The label of the row."""
        schema = _schema(list(self.params.labels))
        call = self.structured_call(row, schema, {"labels": self._labels_text()})
        label, repaired = await ask(call, self._check(schema))
        return self.marked({self.params.output_column: label}, repaired)

    def _labels_text(self) -> str:
        labels = self.params.labels
        meanings = labels if isinstance(labels, dict) else {}
        return "\n".join(
            f"- {label}" + (f": {meanings[label]}" if label in meanings else "") for label in labels
        )

    def _check(self, schema: Mapping[str, object]) -> Callable[[Answer], Structured]:
        valid = self.value_check(schema)
        labels = list(self.params.labels)

        def check(answer: Answer) -> Structured:
            label = _bare_label(self.answer_text(answer), labels)
            if label is not None:
                return Structured(label, False)
            value, repaired = valid(answer)
            return Structured(value["label"], repaired)

        return check


def _bare_label(text: str, labels: Sequence[str]) -> str | None:
    """The label that the answer is: as it is written, else without marks around, else in any case."""
    for form in (str.strip, _unmarked, lambda some: _unmarked(some).casefold()):
        found = [label for label in labels if form(label) == form(text) != ""]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _unmarked(text: str) -> str:
    return text.strip("\"'`.。* \n")


def _schema(labels: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": labels}},
        "required": ["label"],
        "additionalProperties": False,
    }
