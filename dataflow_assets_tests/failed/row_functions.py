"""Functions and operators of a user that fail for the ids that a file `sick` names, and note each call."""

from pathlib import Path

import pyarrow as pa

from dataflow_assets.batch import ROW_ID
from dataflow_assets.operators.operator import Outcome, RowErrors, RowOperator


def note(row_id: object) -> None:
    """Notes a call, and raises where the row is sick."""
    with open("calls", "a", encoding="utf-8") as calls:
        calls.write(f"{row_id}\n")
    sick = Path("sick")
    if sick.exists() and str(row_id) in sick.read_text(encoding="utf-8").split():
        raise ValueError(f"row {row_id} is sick\x1b[31m")


def answer(row: dict) -> dict:
    note(row["id"])
    return {"answer": f"答{row['id']}"}


def answer_or_drop(row: dict) -> dict | None:
    """Drops every third row."""
    note(row["id"])
    return {"answer": f"a{row['id']}"} if row["id"] % 3 else None


def only_short(row: dict) -> dict:
    """Fails for a `q` of more than 20 characters; notes what it read."""
    note(row["id"])
    if len(row["q"]) > 20:
        raise ValueError("too long")
    return {"answer": row["q"].upper()}


class InThree(RowOperator):
    """Makes three rows of one."""

    name = "in_three"
    splits = True

    def apply(self, table: pa.Table) -> Outcome:
        errors, good = RowErrors.none(), []
        for position, number in enumerate(table["id"].to_pylist()):
            try:
                note(number)
                good.append(position)
            except ValueError as error:
                errors.add(position, error)
        kept = table.take(pa.array([place for place in good for _ in range(3)], pa.int64()))
        ids = [f"{row_id}/{n % 3}" for n, row_id in enumerate(kept[ROW_ID].to_pylist())]
        kept = kept.set_column(0, kept.schema.field(0), pa.array(ids, pa.large_string()))
        return Outcome(kept, None, errors.failed_rows(table))
