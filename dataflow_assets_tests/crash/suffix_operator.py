"""The operator of case 20."""

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import Schema
from dataflow_assets.operators.operator import ColumnParams, Outcome, RowOperator


class _SuffixParams(ColumnParams):
    suffix: str


class AddSuffix(RowOperator):
    """Adds `out`, the text with a suffix."""

    name = "add_suffix"
    Params = _SuffixParams
    params: _SuffixParams

    def writes(self) -> Schema:
        return {"out": "string"}

    def apply(self, table: pa.Table) -> Outcome:
        suffix = pa.scalar(self.params.suffix, pa.large_string())
        out = pc.binary_join_element_wise(table["text"], suffix, pa.scalar("", pa.large_string()))
        return Outcome(table.append_column("out", out))
