"""Tables and shortcuts that the tests of the operators share."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from dataflow_assets.batch import Schema, column_of, infer_type, table_of
from dataflow_assets.operators import Outcome, RowOperator, build_operator

CASES = Path(__file__).parents[1] / "cases"


def table(**columns: Sequence[object]) -> pa.Table:
    """A table with row ids r0, r1, ... and these columns, their types inferred."""
    rows = len(next(iter(columns.values())))
    whole = {"row_id": [f"r{row}" for row in range(rows)], **columns}
    schema: Schema = {name: infer_type(values) or "string" for name, values in whole.items()}
    return table_of(whole, schema)


def typed_table(kind: str, values: Sequence[object]) -> pa.Table:
    """A table with one column `text` of this type."""
    schema: Schema = {"row_id": "string", "text": kind}  # pyright: ignore[reportAssignmentType]
    return table_of({"row_id": [f"r{row}" for row in range(len(values))], "text": values}, schema)


def applied(name: str, rows: pa.Table, params: Mapping[str, object] | None = None) -> Outcome:
    """The outcome of a row operator on the table."""
    operator = build_operator(name, params or {})
    assert isinstance(operator, RowOperator)
    return operator.apply(rows)


def edited(name: str, texts: Sequence[str], params: Mapping[str, object] | None = None) -> list[str]:
    """The new texts of a text mapper; every row must be kept."""
    rows = typed_table("string", texts)
    outcome = applied(name, rows, params)
    assert outcome.kept["row_id"] == rows["row_id"]
    return outcome.kept["text"].to_pylist()


def ids(rows: pa.Table | None) -> list[str]:
    """The row ids of a table that may be missing."""
    return [] if rows is None else rows["row_id"].to_pylist()


def case_rows(case: str, file: str = "input.jsonl") -> list[dict]:
    """The rows of a case's JSON Lines file."""
    lines = (CASES / case / file).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


__all__ = ["applied", "case_rows", "column_of", "edited", "ids", "table", "typed_table"]
