"""Questions and answers from a text, with the evidence for them."""

from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import GatedParams, StructuredParams
from dataflow_assets.operators.llm.prompted import GatedOperator, Structured, StructuredOperator
from dataflow_assets.operators.llm.template import text_of
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Answer, CallFailed


class _QAParams(StructuredParams, GatedParams):
    column: str = Field("text", min_length=1, description="The text column; `{text}` in the prompt.")
    pairs: int = Field(3, ge=1, le=50, description="Pairs for each text, at most; `{pairs}` in the prompt.")
    hops: Literal["single", "multi"] = Field(
        "single", description="`multi`: the answer joins two or more places of the text."
    )
    quoted_evidence: bool = Field(False, description="Fail where evidence does not stand in the text.")


@register
class GenerateQA(StructuredOperator, GatedOperator):
    """Makes pairs of question and answer from a text, each with its evidence.

    Grain: one row in, up to `pairs` children out, called `<row_id>/<n>`, with the columns of the row.
    Reads `column`. Writes `question`, `answer` (strings), `evidence` (JSON list of passages) and
    `hops` (integer: the passages that the answer joins), with `repair` also `repaired` (bool). A
    question that comes twice is kept once, more pairs than asked for are left out. Fails a row
    without text as MissingValue, an answer as `json_parse`, `schema_invalid` or `gate:<name>`
    (gates look at each answer; of questions, that they are no refusals and not blank).

    Example:
        - {name: asked, type: generate_qa, params: {column: text, pairs: 2, hops: multi}}
    """

    name = "generate_qa"
    splits = True
    fills = ("pairs",)
    Params = _QAParams
    params: _QAParams

    def shipped_name(self) -> str:
        """The prompt for one hop or for several."""
        return f"generate_qa.{self.params.hops}"

    def aliases(self) -> Mapping[str, str]:
        """`text` stands for the text column."""
        return {"text": self.params.column}

    def reads(self) -> list[str]:
        """The text column and what the prompt names."""
        return list(dict.fromkeys([self.params.column, *super().reads()]))

    def writes(self) -> Schema:
        """Question, answer, evidence and hops."""
        return {
            "question": "string",
            "answer": "string",
            "evidence": "json",
            "hops": "int64",
            **self.marks(),
        }

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The pairs, one a child."""
        schema = pairs_schema(2 if self.params.hops == "multi" else 1)
        call = self.structured_call(row, schema, {"pairs": str(self.params.pairs)})
        pairs, repaired = await ask(call, self._check(row, schema))
        return [self.marked(pair, repaired) for pair in pairs]

    def _check(
        self, row: Mapping[str, object], schema: Mapping[str, object]
    ) -> Callable[[Answer], Structured]:
        valid = self.value_check(schema)

        def check(answer: Answer) -> Structured:
            value, repaired = valid(answer)
            unique = {pair["question"].strip(): pair for pair in reversed(value["pairs"])}
            pairs = list(reversed(unique.values()))[: self.params.pairs]
            return Structured([self._child(pair, row) for pair in pairs], repaired)

        return check

    def _child(self, pair: Mapping, row: Mapping[str, object]) -> dict[str, object]:
        question, answer = pair["question"].strip(), pair["answer"].strip()
        self.plain_gates.check(question, (), row)
        self.gates.check(answer, self.inputs(row), row)
        evidence = [passage.strip() for passage in pair["evidence"]]
        if self.params.quoted_evidence:
            self._check_evidence(evidence, row)
        return {"question": question, "answer": answer, "evidence": evidence, "hops": len(evidence)}

    def _check_evidence(self, evidence: list[str], row: Mapping[str, object]) -> None:
        text = " ".join(text_of(row, self.params.column).split())
        for passage in evidence:
            if not passage or " ".join(passage.split()) not in text:
                raise CallFailed(
                    "gate:quoted_evidence",
                    f"gate quoted_evidence: {passage!r:.100} does not stand in column {self.params.column!r}",
                    raw=passage,
                )


def pairs_schema(hops: int) -> dict[str, object]:
    """The schema of an answer: pairs with at least so many passages of evidence."""
    text = {"type": "string", "minLength": 1}
    fields = {
        "question": text,
        "answer": text,
        "evidence": {"type": "array", "items": text, "minItems": hops},
    }
    pair = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    pairs = {"type": "array", "items": pair, "minItems": 1}
    return {
        "type": "object",
        "properties": {"pairs": pairs},
        "required": ["pairs"],
        "additionalProperties": False,
    }
