"""Merging: whatever was done again, in whatever parts, the batch is as if all had been done at once."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import arrow_field, schema_of
from dataflow_assets.failed_queue.merge import merged, with_attempts
from dataflow_assets.operators.operator import REJECT_REASON, Outcome

FATES = st.lists(st.sampled_from(["kept", "rejected", "failed"]), min_size=1, max_size=12)


def outcome(fates: dict[int, str], splits: bool) -> Outcome:
    """The outcome of the rows with these numbers; a kept row has two children where rows are split."""
    kept = [f"r/{n}" for n, fate in fates.items() if fate == "kept"]
    kept = [f"{row_id}/{child}" for row_id in kept for child in (0, 1)] if splits else kept
    rejected = rows(fates, "rejected")
    failed = rows(fates, "failed")
    reasons = pa.array(["no"] * rejected.num_rows, pa.large_string())
    failed = failed.append_column("attempts", pa.array([1] * failed.num_rows, pa.int64()))
    rejected = rejected.append_column(arrow_field(REJECT_REASON, "string"), reasons)
    return Outcome(table(kept), rejected if rejected.num_rows else None, failed if failed.num_rows else None)


def rows(fates: dict[int, str], fate: str) -> pa.Table:
    return table([f"r/{n}" for n, found in fates.items() if found == fate])


def table(row_ids: list[str]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(row_ids, pa.large_string())], schema=pa.schema([arrow_field("row_id", "string")])
    )


@given(FATES, FATES, st.booleans())
def test_a_batch_in_two_parts_is_the_batch_at_once(first: list[str], then: list[str], splits: bool) -> None:
    before = dict(enumerate(first))
    redone = {n: fate for (n, was), fate in zip(before.items(), then, strict=False) if was == "failed"}
    came_in = pa.chunked_array([[f"r/{n}" for n in before]], pa.large_string())
    old, new = outcome(before, splits), outcome(redone, splits)
    result = merged(old, new, came_in, splits, [f"r/{n}" for n in redone])
    for part, expected in zip(result, outcome({**before, **redone}, splits), strict=True):
        assert (part if part is not None and part.num_rows else None) == (
            expected if expected is not None and expected.num_rows else None
        )


def test_parts_with_different_columns_get_nulls() -> None:
    old = Outcome(table([]), None, table(["a", "b"]).append_column("attempts", pa.array([1, 1])))
    new = table(["a"]).append_column("attempts", pa.array([2]))
    new = new.append_column(arrow_field("raw_answer", "string"), pa.array(["?"], pa.large_string()))
    result = merged(
        old, Outcome(table([]), None, new), pa.chunked_array([["a", "b"]], pa.large_string()), False, ["a"]
    )
    assert result.failed is not None
    assert schema_of(result.failed) == {"row_id": "string", "attempts": "int64", "raw_answer": "string"}
    assert result.failed.to_pylist() == [
        {"row_id": "a", "attempts": 2, "raw_answer": "?"},
        {"row_id": "b", "attempts": 1, "raw_answer": None},
    ]


def test_attempts_add_up() -> None:
    failed = table(["a", "b"]).append_column("attempts", pa.array([3, 1]))
    result = with_attempts(Outcome(table([]), None, failed), {"a": 4})
    assert result.failed is not None and result.failed["attempts"].to_pylist() == [7, 1]
