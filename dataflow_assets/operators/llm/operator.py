"""The contract of operators that ask a model: one row in, calls, the row's new values out."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar, cast

from pydantic import BaseModel, Field

from dataflow_assets.batch import Schema
from dataflow_assets.operators.operator import Operator, Params
from dataflow_assets.serving.calls import Answer, Call

DEFAULT_SERVING = "default"
Checked = TypeVar("Checked")


class Ask(Protocol):
    """Sends a call and gives what `check` makes of its answer.

    The client looks into the ledger first, keeps the limits, retries and counts. `check` raises
    CallFailed where the answer is not usable: the call is then sent again where that error class is
    retried. Only an answer that passed is kept in the ledger.
    """

    async def __call__(self, call: Call, check: Callable[[Answer], Checked]) -> Checked:
        """Raises CallFailed when the attempts are used up; Stopped when the run is to stop."""
        ...


@dataclass(frozen=True)
class Rejected:
    """The row is dropped, for this reason; `details` go beside it as JSON, in `reject_details`."""

    reason: str
    details: Mapping[str, object] = field(default_factory=dict)


Done = Mapping[str, object] | Sequence[Mapping[str, object]] | Rejected
"""The new values of the row; for an operator that splits, those of each child; or a rejection."""


class ServingParams(Params):
    """Which serving an operator asks, and how."""

    serving: str = Field(DEFAULT_SERVING, description="Name of a serving of the pipeline.")
    temperature: float | None = Field(None, ge=0, description="Default: the serving's, else the server's.")
    max_tokens: int | None = Field(None, ge=1, description="Longest answer, in tokens.")
    seed: int | None = Field(None, description="Sent to servers that take one.")
    usage_column: str | None = Field(
        None,
        description="JSON column that gets `tokens_in`, `tokens_out` and `cost` of the row's calls, answers "
        "from the ledger included.",
    )


class LLMOperator(Operator):
    """An operator that asks a model about each row; rows are independent.

    `needs_max_tokens` is False where answers are no text (embeddings).

    Write `do`; it runs for many rows at once, so it keeps nothing in the operator. What it raises
    fails the row alone. `writes()` must name every column that `do` gives.
    """

    Params: ClassVar[type[BaseModel]] = ServingParams
    model_identity: Mapping[str, object] = {}
    needs_max_tokens: ClassVar[bool] = True

    @property
    def serving(self) -> str:
        """The name of the serving that it asks."""
        return cast(ServingParams, self.params).serving

    def identity(self) -> Mapping[str, object]:
        """The model that it asks, and what is always sent to it; set by the pipeline."""
        return self.model_identity

    def fingerprint_of_params(self) -> Mapping[str, object]:
        """The parameters without the serving's name: the model decides."""
        params = super().fingerprint_of_params()
        return {name: value for name, value in params.items() if name != "serving"}

    @property
    def usage_column(self) -> str | None:
        """The column that gets what the row's calls took."""
        return cast(ServingParams, self.params).usage_column

    def output_schema(self, schema: Schema) -> Schema:
        """The columns of `writes()` and the usage column beside those that came."""
        usage: Schema = {} if self.usage_column is None else {self.usage_column: "json"}
        return {**super().output_schema(schema), **usage}

    @abstractmethod
    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The new values of one row (JSON columns as Python values), its children, or a rejection.

        Raises RowError, or anything, to send the row to `_failed`.
        """
