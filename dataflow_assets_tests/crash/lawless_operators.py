"""Operators that break the law of conservation in one batch."""

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.operators.operator import Outcome, RowOperator


class LosesARow(RowOperator):
    """Loses row 25."""

    name = "loses_a_row"

    def apply(self, table: pa.Table) -> Outcome:
        return Outcome(table.filter(pc.not_equal(table["n"], 25)))
