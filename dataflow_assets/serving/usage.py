"""What calls took: counts, tokens, cost and time, of a row, a batch or a step."""

import math
from dataclasses import dataclass, fields


def shown_cost(cost: float) -> str:
    """The cost with four decimals, or as many as show two digits of it: `0.0120`, `0.000042`."""
    decimals = 1 - math.floor(math.log10(abs(cost))) if cost else 0
    return f"{cost:,.{max(4, decimals)}f}"


@dataclass
class Usage:
    """`calls` were sent, `cached` answers were there already; `seconds` is the time of calls in flight.

    Tokens and cost (in the prices' currency) are those of both: what the rows are worth, whenever it
    was paid. What was spent is in the ledger.
    """

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def add(self, other: "Usage") -> None:
        """Counts the other too."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
