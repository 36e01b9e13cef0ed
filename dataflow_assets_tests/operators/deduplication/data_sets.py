"""Runs a dataset-scope operator on a table in batches, and says what became of the rows."""

import random
from collections.abc import Mapping, Sequence
from functools import cache

import pyarrow as pa

from dataflow_assets.operators import DatasetOperator, Outcome, build_operator
from dataflow_assets_tests.operators.sample_tables import ids


def outcomes(
    name: str, rows: pa.Table, batch_rows: int, params: Mapping[str, object] | None = None
) -> list[Outcome]:
    """The outcome of each batch."""
    operator = build_operator(name, params or {})
    assert isinstance(operator, DatasetOperator)
    batches = {f"b{begin:05}": rows.slice(begin, batch_rows) for begin in range(0, rows.num_rows, batch_rows)}
    summaries = [(key, operator.summarize(batch)) for key, batch in batches.items()]
    verdicts = dict(operator.decide(summaries))
    assert list(verdicts) == list(batches)
    return [operator.apply_verdict(batch, verdicts[key]) for key, batch in batches.items()]


def kept_ids(found: Sequence[Outcome]) -> list[str]:
    """The ids of all kept rows in order."""
    return [row_id for outcome in found for row_id in ids(outcome.kept)]


def rejected_rows(found: Sequence[Outcome]) -> list[dict]:
    """All rejected rows in order."""
    return [row for outcome in found if outcome.rejected for row in outcome.rejected.to_pylist()]


def dropped(found: Sequence[Outcome]) -> dict[str, str]:
    """The id of the row that stayed, by the id of the row that was dropped."""
    return {row["row_id"]: row["duplicate_of"] for row in rejected_rows(found)}


@cache
def sentences(count: int = 20_000, seed: int = 3) -> list[str]:
    """Sentences of made-up words, of which some are frequent and most are rare."""
    random_ = random.Random(seed)
    words = ["".join(random_.choices("aeioubcdlmnrst", k=random_.randint(2, 9))) for _ in range(5000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    return [" ".join(random_.choices(words, weights, k=random_.randint(3, 9))) + "." for _ in range(count)]
