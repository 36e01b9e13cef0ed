"""Makes instructions harder or different (Evol-Instruct, Xu et al. 2023)."""

from collections.abc import Mapping
from typing import Literal

import xxhash
from pydantic import Field

from dataflow_assets.batch import ROW_ID, Schema
from dataflow_assets.operators.llm.gates import GateParams
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import GatedParams
from dataflow_assets.operators.llm.prompted import GatedOperator
from dataflow_assets.operators.llm.shipped import prompt_text
from dataflow_assets.operators.registry import register

Method = Literal["deepen", "concretize", "constrain", "reason", "breadth"]
METHODS: tuple[Method, ...] = ("deepen", "concretize", "constrain", "reason", "breadth")


class _EvolveGates(GateParams):
    """Gates of an evolved instruction: it must not be the one that was given."""

    not_a_copy: bool = Field(default=True, description="Not what was given: see `max_similarity`.")


class _EvolveParams(GatedParams):
    column: str = Field(
        "instruction", min_length=1, description="The instruction; `{instruction}` in the prompt."
    )
    output_column: str = Field("evolved", min_length=1, description="The column for the new instruction.")
    method_column: str = Field("evolve_method", min_length=1, description="The column for the method's name.")
    methods: list[Method] = Field(
        list(METHODS), min_length=1, description="One is chosen for each row, by `seed` and `row_id`."
    )
    gates: _EvolveGates = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        _EvolveGates(), description="What an answer must be; here `not_a_copy` is on."
    )


@register
class EvolveInstruction(GatedOperator):
    """Evolves an instruction by one of five methods: deeper, more concrete, bound, more reasoning, or new.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    and `method_column` (strings). The method depends on `seed` and the row's id alone. Methods after
    Evol-Instruct (Xu et al. 2023, WizardLM): deepen, concretize, constrain, reason, and breadth,
    which asks for a new instruction of the same field. Fails a row without text as MissingValue, an
    answer that misses a gate as `gate:<name>`.

    Example:
        - {name: evolved, type: evolve_instruction, params: {column: instruction, methods: [deepen, breadth]}}
    """

    name = "evolve_instruction"
    prompt_name = "evolve_instruction"
    pieces = tuple(f"evolve_instruction.{method}" for method in METHODS)
    fills = ("method",)
    Params = _EvolveParams
    params: _EvolveParams

    def aliases(self) -> Mapping[str, str]:
        """`instruction` stands for the instruction's column."""
        return {"instruction": self.params.column}

    def writes(self) -> Schema:
        """The new instruction and the method."""
        return {self.params.output_column: "string", self.params.method_column: "string"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The evolved instruction."""
        method = self._method(row)
        words = {"method": prompt_text(f"evolve_instruction.{method}", self.language(row))}
        text = await ask(self.call(self.messages(row, self.prompt_of(row, words))), self.text_check(row))
        return {self.params.output_column: text, self.params.method_column: method}

    def _method(self, row: Mapping[str, object]) -> Method:
        chosen = xxhash.xxh3_64_intdigest(f"{self.params.seed or 0}:{row.get(ROW_ID)}".encode())
        return self.params.methods[chosen % len(self.params.methods)]
