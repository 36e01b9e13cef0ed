"""Says which of two texts is better, whichever stands first."""

from collections.abc import Mapping

from pydantic import Field, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import StructuredParams
from dataflow_assets.operators.llm.prompted import StructuredOperator
from dataflow_assets.operators.llm.template import written_text_of
from dataflow_assets.operators.llm.together import together
from dataflow_assets.operators.registry import register

_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "winner": {"type": "string", "enum": ["first", "second", "tie"]},
    },
    "required": ["reason", "winner"],
    "additionalProperties": False,
}


class _JudgePairsParams(StructuredParams):
    question_column: str = Field(
        "instruction", min_length=1, description="What both texts answer; `{question}` in the prompt."
    )
    a_column: str = Field("answer_a", min_length=1, description="The text that is called a.")
    b_column: str = Field("answer_b", min_length=1, description="The text that is called b.")
    prefix: str = Field("", description="Begins the names of the written columns.")

    @model_validator(mode="after")
    def _shows_both(self) -> "_JudgePairsParams":
        if self.a_column == self.b_column:
            raise ValueError(f"a_column and b_column are both {self.a_column!r}; expected two columns")
        missing = {"first", "second"} - set(self.template.columns() if self.template else ("first", "second"))
        if missing:
            raise ValueError(
                f"the prompt lacks {{{sorted(missing)[0]}}}; it must show {{first}} and {{second}}"
            )
        return self


@register
class JudgePairs(StructuredOperator):
    """Compares two texts twice, with their places swapped; only what wins both times has won.

    Grain: one row in, one row out; order and ids unchanged. Reads `question_column`, `a_column`,
    `b_column`. Writes, after `prefix`, `verdict` (a, b or tie), `verdicts` (JSON list: with a first,
    then with b first) and `verdict_reasons` (JSON list), with `repair` also `repaired` (bool).
    Judges favour a place (Zheng et al. 2023, MT-Bench): two verdicts that differ are a tie. Equal
    texts are a tie without a call. Fails a row with a missing or blank text as MissingValue, an answer as
    `json_parse` or `schema_invalid`.

    Example:
        - {name: compared, type: judge_pairs, params: {a_column: answer_small, b_column: answer_large}}
    """

    name = "judge_pairs"
    prompt_name = "judge_pairs"
    fills = ("first", "second")
    Params = _JudgePairsParams
    params: _JudgePairsParams

    def aliases(self) -> Mapping[str, str]:
        """`question` stands for its column."""
        return {"question": self.params.question_column}

    def reads(self) -> list[str]:
        """The two texts and what the prompt names."""
        return list(dict.fromkeys([self.params.a_column, self.params.b_column, *super().reads()]))

    def writes(self) -> Schema:
        """The verdict, and how it came about."""
        prefix = self.params.prefix
        columns: Schema = {f"{prefix}verdict": "string", f"{prefix}verdicts": "json"}
        return {**columns, f"{prefix}verdict_reasons": "json", **self.marks()}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The verdict of both orders."""
        texts = {
            "a": written_text_of(row, self.params.a_column),
            "b": written_text_of(row, self.params.b_column),
        }
        if texts["a"].strip() == texts["b"].strip():
            return self._values([], [], False)
        orders = (("a", "b"), ("b", "a"))
        calls = [
            self.structured_call(row, _SCHEMA, {"first": texts[first], "second": texts[second]})
            for first, second in orders
        ]
        check = self.value_check(_SCHEMA)
        found = await together([ask(call, check) for call in calls])
        winners = [
            dict(zip(("first", "second", "tie"), (*order, "tie"), strict=True))[each.value["winner"]]
            for order, each in zip(orders, found, strict=True)
        ]
        reasons = [each.value["reason"] for each in found]
        return self._values(winners, reasons, any(each.repaired for each in found))

    def _values(self, winners: list[str], reasons: list[str], repaired: bool) -> dict[str, object]:
        """The columns' values; no winners stand for equal texts."""
        verdict = winners[0] if len(set(winners)) == 1 else "tie"
        found = {"verdict": verdict, "verdicts": winners, "verdict_reasons": reasons}
        return self.marked({f"{self.params.prefix}{name}": each for name, each in found.items()}, repaired)
