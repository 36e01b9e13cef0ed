"""What a step needs to ask a model: which serving, which ledger, which budget."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from dataflow_assets.serving.spec import BudgetSpec, ScriptedSpec, ServingSpec

if TYPE_CHECKING:
    from dataflow_assets.serving.client import Client

_ROWS_A_CALL = 4
_LEAST_ROWS = 256


class Where(NamedTuple):
    """Who spends: the pipeline, as `<name>@<hash of its folder>`, and the step."""

    pipeline: str
    step: str


@dataclass(frozen=True)
class Asking:
    """One step's way to its model. `ledger` is a file or a database URL, `batch_rows` the size of batches."""

    spec: ServingSpec
    ledger: str
    where: Where
    batch_rows: int
    step_budget: BudgetSpec | None = None
    pipeline_budget: BudgetSpec | None = None
    use_ledger: bool = True

    @property
    def rows_in_hand(self) -> int:
        """How many rows are worked on at a time: more than calls in flight, for rows with several calls."""
        return max(_LEAST_ROWS, _ROWS_A_CALL * self.spec.concurrency)

    @property
    def batches_in_hand(self) -> int:
        """So many batches that the end of one does not leave the serving idle."""
        return -(-2 * self.spec.concurrency // self.batch_rows) + 1

    async def client(self) -> "Client":
        """The client, in the running event loop. The pipeline's lock must be held. Raises LedgerError."""
        from dataflow_assets.serving.budget import Budget
        from dataflow_assets.serving.client import Client
        from dataflow_assets.serving.ledger import Ledger
        from dataflow_assets.serving.make import make_serving

        ledger = Ledger(self.ledger)
        ledger.settle_leases(*self.where)
        budget = Budget.of(self.step_budget, self.pipeline_budget, ledger, self.where)
        return Client(self.spec, make_serving(self.spec), ledger, self.where, budget, self.use_ledger)


def identity_of(spec: ServingSpec) -> Mapping[str, object]:
    """What of a serving decides the answers: the model and what is always sent, not where it stands."""
    identity: dict[str, object] = {"model": spec.model, "parameters": spec.parameters}
    if isinstance(spec, ScriptedSpec) and spec.script is not None:
        with open(spec.script, "rb") as file:
            identity["script"] = xxhash.xxh3_128_hexdigest(file.read())
    return identity
