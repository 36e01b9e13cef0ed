"""An operator whose rows take as long as they say, for the benchmark of replicas."""

import time

import pyarrow as pa

from dataflow_assets.operators.operator import Outcome, Params, RowOperator


class Sleeper(RowOperator):
    """Sleeps the `seconds` of each row; changes nothing."""

    name = "sleeper"
    Params = Params

    def reads(self) -> list[str]:
        """The seconds."""
        return ["seconds"]

    def apply(self, table: pa.Table) -> Outcome:
        """The rows as they came."""
        for seconds in table["seconds"].to_pylist():
            time.sleep(seconds)
        return Outcome(table)
